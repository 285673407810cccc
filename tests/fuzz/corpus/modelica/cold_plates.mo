package ColdPlates "two conducting plates round a straight pipe (section 3.4), our reading of it"
  function derivatives "of temperatures [K] and pressures [Pa]: a kernel along the pipe, one over the plates"
    input Real T[:, :] "of the plates; the pipe runs along the first dimension below column 1";
    input Real p[size(T, 1)] "of the fluid's volumes";
    input Real Tf[size(T, 1)] "of the fluid's volumes";
    input Real G = 2 "conductance between cells, W/K";
    input Real C = 40 "heat capacity of a cell, J/K";
    input Real Gw = 5 "conductance between the wall and the fluid, W/K";
    input Real Cf = 80 "heat capacity of a volume, J/K";
    input Real K = 1e-4 "flow for a pressure difference, kg/(s.Pa)";
    input Real cp = 4180 "J/(kg.K)";
    input Real E = 1e7 "stiffness of a volume, Pa/kg";
    input Real p_in = 101000;
    input Real p_out = 100000;
    input Real T_in = 373.15;
    output Real dT[size(T, 1), size(T, 2)];
    output Real dp[size(T, 1)];
    output Real dTf[size(T, 1)];
  protected
    Real flow_in;
    Real flow_out;
    Real upstream;
    Real q;
  algorithm
    for i in 1:size(T, 1) loop
      flow_in := K * ((if i == 1 then p_in else p[max(i - 1, 1)]) - p[i]);
      flow_out := K * (p[i] - (if i == size(T, 1) then p_out else p[min(i + 1, size(T, 1))]));
      upstream := if i == 1 then T_in else Tf[max(i - 1, 1)];
      dp[i] := E * (flow_in - flow_out);
      dTf[i] := (cp * flow_in * (upstream - Tf[i]) + Gw * (T[i, 1] - Tf[i])) / Cf;
    end for;
    for i in 1:size(T, 1), j in 1:size(T, 2) loop
      q := 0;
      if i > 1 then
        q := q + G * (T[i - 1, j] - T[i, j]);
      end if;
      if i < size(T, 1) then
        q := q + G * (T[i + 1, j] - T[i, j]);
      end if;
      if j > 1 then
        q := q + G * (T[i, j - 1] - T[i, j]);
      else
        q := q + Gw * (Tf[i] - T[i, j]);
      end if;
      if j < size(T, 2) then
        q := q + G * (T[i, j + 1] - T[i, j]);
      end if;
      dT[i, j] := q / C;
    end for;
    annotation(gpuFunction = true);
  end derivatives;

  function simulate "n_steps of the midpoint rule (Rkfix2), inline"
    input Real T0[:, :];
    input Real p0[size(T0, 1)];
    input Real Tf0[size(T0, 1)];
    input Real dt = 1e-7;
    input Integer n_steps;
    output Real T[size(T0, 1), size(T0, 2)];
    output Real p[size(T0, 1)];
    output Real Tf[size(T0, 1)];
  protected
    Real dT[size(T0, 1), size(T0, 2)];
    Real dp[size(T0, 1)];
    Real dTf[size(T0, 1)];
  algorithm
    T := T0;
    p := p0;
    Tf := Tf0;
    for s in 1:n_steps loop
      (dT, dp, dTf) := derivatives(T, p, Tf);
      (dT, dp, dTf) := derivatives(T + dt / 2 * dT, p + dt / 2 * dp, Tf + dt / 2 * dTf);
      T := T + dt * dT;
      p := p + dt * dp;
      Tf := Tf + dt * dTf;
    end for;
    annotation(gpuFunction = true);
  end simulate;
end ColdPlates;
