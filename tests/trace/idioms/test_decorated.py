"""`trace.idioms.decorated`: another function under the same decorators."""

import functools

import pytest

from transformers_exporters.trace.idioms.decorated import innermost, with_innermost


def plus(number):
    def decorator(function):
        @functools.wraps(function)
        def added(*args, **kwargs):
            return function(*args, **kwargs) + number

        return added

    return decorator


@plus(10)
@plus(100)
def one():
    return 1


def test_decorators_stay():
    replaced = with_innermost(one, lambda: 2)
    assert replaced() == 112
    assert one() == 111
    assert innermost(one)() == 1


def test_a_plain_function_is_replaced():
    two = with_innermost(innermost(one), lambda: 2)
    assert two() == 2


def test_a_decorator_that_hides_its_function_is_refused():
    hidden = functools.wraps(one)(lambda: 0)
    with pytest.raises(TypeError, match="does not hold"):
        with_innermost(hidden, lambda: 2)
