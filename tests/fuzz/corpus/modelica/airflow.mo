package Airflow "enthalpy flows of a compartment's cells in six directions (section 3.2), our reading"
  constant Real cp = 1004.5 "J/(kg.K)";
  constant Real lambda = 0.026 "W/(m.K)";

  function enthalpy "carried with the flow of mass m from the side that it comes from, and conducted"
    input Real m "kg/s, towards the neighbour";
    input Real here "K";
    input Real there "K";
    input Real conductance "W/K";
    output Real Q "W, towards the neighbour";
  algorithm
    Q := cp * (if m > 0 then m * here else m * there) + conductance * (here - there);
  end enthalpy;

  function flows "the six flows of each cell; walls are adiabatic"
    input Real T[:, :, :];
    input Real mx[size(T, 1), size(T, 2), size(T, 3)] "towards the next cell along x, kg/s";
    input Real my[size(T, 1), size(T, 2), size(T, 3)];
    input Real mz[size(T, 1), size(T, 2), size(T, 3)];
    input Real dx = 0.1 "m";
    output Real east[size(T, 1), size(T, 2), size(T, 3)];
    output Real west[size(T, 1), size(T, 2), size(T, 3)];
    output Real north[size(T, 1), size(T, 2), size(T, 3)];
    output Real south[size(T, 1), size(T, 2), size(T, 3)];
    output Real up[size(T, 1), size(T, 2), size(T, 3)];
    output Real down[size(T, 1), size(T, 2), size(T, 3)];
  protected
    Real G;
  algorithm
    G := lambda * dx;
    for i in 1:size(T, 1), j in 1:size(T, 2), k in 1:size(T, 3) loop
      if i < size(T, 1) then
        east[i, j, k] := enthalpy(mx[i, j, k], T[i, j, k], T[i + 1, j, k], G);
      end if;
      if i > 1 then
        west[i, j, k] := enthalpy(-mx[i - 1, j, k], T[i, j, k], T[i - 1, j, k], G);
      end if;
      if j < size(T, 2) then
        north[i, j, k] := enthalpy(my[i, j, k], T[i, j, k], T[i, j + 1, k], G);
      end if;
      if j > 1 then
        south[i, j, k] := enthalpy(-my[i, j - 1, k], T[i, j, k], T[i, j - 1, k], G);
      end if;
      if k < size(T, 3) then
        up[i, j, k] := enthalpy(mz[i, j, k], T[i, j, k], T[i, j, k + 1], G);
      end if;
      if k > 1 then
        down[i, j, k] := enthalpy(-mz[i, j, k - 1], T[i, j, k], T[i, j, k - 1], G);
      end if;
    end for;
    annotation(gpuFunction = true);
  end flows;
end Airflow;
