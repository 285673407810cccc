package Stam "fluid on a grid with a rim of one cell (section 3.5): relaxation by red and black, or Jacobi's"
  function red_black "x - a (neighbours - 4 x) = x0 by Gauss-Seidel in two colours, sweeps times"
    input Real x0[:, :];
    input Real a;
    input Real c "1 + 4 a, or 4";
    input Integer sweeps;
    output Real x[size(x0, 1), size(x0, 2)];
  algorithm
    x := x0;
    for s in 1:2 * sweeps loop
      for i in 2:size(x0, 1) - 1, j in 2:size(x0, 2) - 1 loop
        if mod(i + j + s, 2) == 0 then
          x[i, j] := (x0[i, j] + a * (x[i - 1, j] + x[i + 1, j] + x[i, j - 1] + x[i, j + 1])) / c;
        end if;
      end for;
    end for;
    annotation(gpuFunction = true);
  end red_black;

  function jacobi "the same by Jacobi's sweeps"
    input Real x0[:, :];
    input Real a;
    input Real c;
    input Integer sweeps;
    output Real x[size(x0, 1), size(x0, 2)];
  protected
    Real y[size(x0, 1), size(x0, 2)];
  algorithm
    x := x0;
    for s in 1:sweeps loop
      y := x;
      for i in 2:size(x0, 1) - 1, j in 2:size(x0, 2) - 1 loop
        x[i, j] := (x0[i, j] + a * (y[i - 1, j] + y[i + 1, j] + y[i, j - 1] + y[i, j + 1])) / c;
      end for;
    end for;
    annotation(gpuFunction = true);
  end jacobi;

  function advect "d carried along the velocities u, v for dt0 cells"
    input Real d0[:, :];
    input Real u[size(d0, 1), size(d0, 2)];
    input Real v[size(d0, 1), size(d0, 2)];
    input Real dt0;
    output Real d[size(d0, 1), size(d0, 2)];
  protected
    Real x;
    Real y;
    Real s;
    Real t;
    Integer k;
    Integer l;
  algorithm
    for i in 2:size(d0, 1) - 1, j in 2:size(d0, 2) - 1 loop
      x := min(max(i - dt0 * u[i, j], 1.5), size(d0, 1) - 0.5);
      y := min(max(j - dt0 * v[i, j], 1.5), size(d0, 2) - 0.5);
      k := min(integer(x), size(d0, 1) - 1);
      l := min(integer(y), size(d0, 2) - 1);
      s := x - k;
      t := y - l;
      d[i, j] := (1 - s) * ((1 - t) * d0[k, l] + t * d0[k, l + 1])
        + s * ((1 - t) * d0[k + 1, l] + t * d0[k + 1, l + 1]);
    end for;
    annotation(gpuFunction = true);
  end advect;

  function step "n_steps of velocity and density in a box"
    input Real u0[:, :];
    input Real v0[size(u0, 1), size(u0, 2)];
    input Real d0[size(u0, 1), size(u0, 2)];
    input Real dt = 0.1;
    input Real viscosity = 1e-4;
    input Real diffusion = 1e-4;
    input Integer n_steps = 1;
    input Boolean colours = true "red and black, else Jacobi";
    output Real u[size(u0, 1), size(u0, 2)];
    output Real v[size(u0, 1), size(u0, 2)];
    output Real d[size(u0, 1), size(u0, 2)];
  protected
    constant Integer SWEEPS = 20;
    Real n = size(u0, 1) - 2;
    Real a;
    Real b;
    Real w[size(u0, 1), size(u0, 2)];
    Real p[size(u0, 1), size(u0, 2)];
    Real divergence[size(u0, 1), size(u0, 2)];
  algorithm
    u := u0;
    v := v0;
    d := d0;
    a := dt * viscosity * n * n;
    b := dt * diffusion * n * n;
    for s in 1:n_steps loop
      if colours then
        u := red_black(u, a, 1 + 4 * a, SWEEPS);
        v := red_black(v, a, 1 + 4 * a, SWEEPS);
      else
        u := jacobi(u, a, 1 + 4 * a, SWEEPS);
        v := jacobi(v, a, 1 + 4 * a, SWEEPS);
      end if;
      w := advect(u, u, v, dt * n);
      v := advect(v, u, v, dt * n);
      u := w;
      for i in 2:size(u0, 1) - 1, j in 2:size(u0, 2) - 1 loop
        divergence[i, j] := -0.5 * (u[i + 1, j] - u[i - 1, j] + v[i, j + 1] - v[i, j - 1]) / n;
      end for;
      p := if colours then red_black(divergence, 1, 4, SWEEPS) else jacobi(divergence, 1, 4, SWEEPS);
      for i in 2:size(u0, 1) - 1, j in 2:size(u0, 2) - 1 loop
        u[i, j] := u[i, j] - 0.5 * n * (p[i + 1, j] - p[i - 1, j]);
        v[i, j] := v[i, j] - 0.5 * n * (p[i, j + 1] - p[i, j - 1]);
      end for;
      d := if colours then red_black(d, b, 1 + 4 * b, SWEEPS) else jacobi(d, b, 1 + 4 * b, SWEEPS);
      d := advect(d, u, v, dt * n);
    end for;
    annotation(gpuFunction = true);
  end step;

  function coupled "two boxes: what flows out of the last column of one flows into the first of the other"
    input Real u1[:, :];
    input Real v1[size(u1, 1), size(u1, 2)];
    input Real d1[size(u1, 1), size(u1, 2)];
    input Real u2[size(u1, 1), size(u1, 2)];
    input Real v2[size(u1, 1), size(u1, 2)];
    input Real d2[size(u1, 1), size(u1, 2)];
    input Integer n_steps = 1;
    output Real ua[size(u1, 1), size(u1, 2)];
    output Real va[size(u1, 1), size(u1, 2)];
    output Real da[size(u1, 1), size(u1, 2)];
    output Real ub[size(u1, 1), size(u1, 2)];
    output Real vb[size(u1, 1), size(u1, 2)];
    output Real db[size(u1, 1), size(u1, 2)];
  algorithm
    ua := u1;
    va := v1;
    da := d1;
    ub := u2;
    vb := v2;
    db := d2;
    for s in 1:n_steps loop
      for i in 2:size(u1, 1) - 1 loop
        vb[i, 1] := va[i, size(u1, 2) - 1];
        db[i, 1] := da[i, size(u1, 2) - 1];
      end for;
      for i in 2:size(u1, 1) - 1 loop
        va[i, 1] := vb[i, size(u1, 2) - 1];
        da[i, 1] := db[i, size(u1, 2) - 1];
      end for;
      (ua, va, da) := step(ua, va, da);
      (ub, vb, db) := step(ub, vb, db);
    end for;
    annotation(gpuFunction = true);
  end coupled;
end Stam;
