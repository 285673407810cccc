"""Functions of Modelica, called on a daemon with numpy arrays."""

from __future__ import annotations

import numpy as np
import pytest

import tribo

SCALE = """
function scale "times a, plus its mean"
  input Real x[:, :];
  input Real a = 2;
  input Boolean negative = false;
  output Real y[size(x, 1), size(x, 2)];
  output Integer count;
algorithm
  for i in 1:size(x, 1), j in 1:size(x, 2) loop
    y[i, j] := (if negative then -a else a) * x[i, j];
  end for;
  count := size(x, 1) * size(x, 2);
  annotation(gpuFunction = true);
end scale;
"""


@pytest.mark.parametrize("backend", ["interpreter", "auto"])
def test_a_function_is_called_with_arrays(client: tribo.Client, backend: str) -> None:
    scale = client.function(SCALE)
    x = np.arange(12.0).reshape(3, 4)
    answer = scale.call(x, a=3, negative=True, backend=backend)
    np.testing.assert_array_equal(answer.outputs["y"], -3 * x)
    assert answer.outputs["count"] == 12
    assert answer.backend in ("interpreter", "cpu", "gpu")
    y, count = scale(x)
    np.testing.assert_array_equal(y, 2 * x)
    assert count == 12
    assert "kernel over (i, j)" in scale.loops


async def test_calls_are_awaited(aio: tribo.aio.Client) -> None:
    scale = await aio.function(SCALE)
    x = np.random.default_rng(2).random((700, 600))
    y, count = await scale(x, a=1)
    np.testing.assert_array_equal(y, x)
    assert count == x.size
    assert (await scale.call(x, backend="interpreter")).backend == "interpreter"
    with pytest.raises(tribo.InvalidArgumentError, match="expected Real"):
        await scale(x[0])


def test_large_outputs_come_in_pieces(client: tribo.Client) -> None:
    x = np.random.default_rng(1).random((700, 600))
    y, _ = client.function(SCALE)(x, 1.0)
    np.testing.assert_array_equal(y, x)


def test_programs_are_listed(client: tribo.Client) -> None:
    program = client.program(SCALE)
    assert program["scale"].name == "scale"
    assert program.key in [p.key for p in client.programs()]


def test_faults_name_the_place(client: tribo.Client) -> None:
    with pytest.raises(tribo.InvalidArgumentError, match=r"bad.mo:1:44: .*expected"):
        client.function("function f output Real y; algorithm y := 1 end f;", file="bad.mo")
    with pytest.raises(tribo.UnsupportedError, match="'model' is left out"):
        client.function("model m end m;")
    divide = client.function("function f input Real x; output Real y; algorithm y := 1 / x; end f;")
    with pytest.raises(tribo.InvalidArgumentError, match="division by zero"):
        divide(0.0)
    with pytest.raises(tribo.InvalidArgumentError, match="input 'x' is missing"):
        divide()
    with pytest.raises(tribo.InvalidArgumentError, match="input 'x'"):
        divide(np.ones(3))
    with pytest.raises(TypeError):
        divide(z=1)
    endless = client.function(
        "function f output Real y; algorithm y := 0; while true loop y := y + 1; end while; end f;"
    )
    with pytest.raises(tribo.DeadlineExceededError):
        endless.call(seconds=0.2)
    assert divide(4.0) == 0.25
