package ShallowWater "linear shallow water on a staggered grid with closed walls (section 3.2)"
  constant Real g = 9.81 "m/s2";

  function derivatives "of the height h [m] and of the velocities vx, vy [m/s] on the cells' sides"
    input Real h[:, :];
    input Real vx[size(h, 1) + 1, size(h, 2)];
    input Real vy[size(h, 1), size(h, 2) + 1];
    input Real H "depth, m";
    input Real dx "width of a cell, m";
    output Real dh[size(h, 1), size(h, 2)];
    output Real dvx[size(h, 1) + 1, size(h, 2)];
    output Real dvy[size(h, 1), size(h, 2) + 1];
  algorithm
    for i in 1:size(h, 1), j in 1:size(h, 2) loop
      dh[i, j] := H * (vx[i, j] - vx[i + 1, j] + vy[i, j] - vy[i, j + 1]) / dx;
    end for;
    for i in 2:size(h, 1), j in 1:size(h, 2) loop
      dvx[i, j] := g * (h[i - 1, j] - h[i, j]) / dx;
    end for;
    for i in 1:size(h, 1), j in 2:size(h, 2) loop
      dvy[i, j] := g * (h[i, j - 1] - h[i, j]) / dx;
    end for;
    annotation(gpuFunction = true);
  end derivatives;

  function euler "n_steps of explicit Euler, inline: the states stay on the card"
    input Real h0[:, :];
    input Real vx0[size(h0, 1) + 1, size(h0, 2)];
    input Real vy0[size(h0, 1), size(h0, 2) + 1];
    input Real H = 8;
    input Real L = 32;
    input Real dt;
    input Integer n_steps;
    output Real h[size(h0, 1), size(h0, 2)];
    output Real vx[size(h0, 1) + 1, size(h0, 2)];
    output Real vy[size(h0, 1), size(h0, 2) + 1];
  protected
    Real a;
    Real b;
  algorithm
    a := dt * H * size(h0, 1) / L;
    b := dt * g * size(h0, 1) / L;
    h := h0;
    vx := vx0;
    vy := vy0;
    for s in 1:n_steps loop
      for i in 1:size(h0, 1), j in 1:size(h0, 2) loop
        h[i, j] := h[i, j] + a * (vx[i, j] - vx[i + 1, j] + vy[i, j] - vy[i, j + 1]);
      end for;
      for i in 1:size(h0, 1), j in 1:size(h0, 2) loop
        if i > 1 then
          vx[i, j] := vx[i, j] + b * (h[i - 1, j] - h[i, j]);
        end if;
        if j > 1 then
          vy[i, j] := vy[i, j] + b * (h[i, j - 1] - h[i, j]);
        end if;
      end for;
    end for;
    annotation(gpuFunction = true);
  end euler;

  function runge_kutta "n_steps of the midpoint rule (Rkfix2), inline"
    input Real h0[:, :];
    input Real vx0[size(h0, 1) + 1, size(h0, 2)];
    input Real vy0[size(h0, 1), size(h0, 2) + 1];
    input Real H = 8;
    input Real L = 32;
    input Real dt;
    input Integer n_steps;
    output Real h[size(h0, 1), size(h0, 2)];
    output Real vx[size(h0, 1) + 1, size(h0, 2)];
    output Real vy[size(h0, 1), size(h0, 2) + 1];
  protected
    Real dx;
    Real dh[size(h0, 1), size(h0, 2)];
    Real dvx[size(h0, 1) + 1, size(h0, 2)];
    Real dvy[size(h0, 1), size(h0, 2) + 1];
  algorithm
    dx := L / size(h0, 1);
    h := h0;
    vx := vx0;
    vy := vy0;
    for s in 1:n_steps loop
      (dh, dvx, dvy) := derivatives(h, vx, vy, H, dx);
      (dh, dvx, dvy) := derivatives(h + dt / 2 * dh, vx + dt / 2 * dvx, vy + dt / 2 * dvy, H, dx);
      h := h + dt * dh;
      vx := vx + dt * dvx;
      vy := vy + dt * dvy;
    end for;
    annotation(gpuFunction = true);
  end runge_kutta;
end ShallowWater;
