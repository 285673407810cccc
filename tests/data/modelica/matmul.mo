function multiply "matrix product, appendix A.2 of Göteman and Roxling"
  input Real A[:, :];
  input Real B[size(A, 2), :];
  output Real C[size(A, 1), size(B, 2)];
protected
  Real s;
algorithm
  for i in 1:size(A, 1) loop
    for j in 1:size(B, 2) loop
      s := 0;
      for k in 1:size(A, 2) loop
        s := s + A[i, k] * B[k, j];
      end for;
      C[i, j] := s;
    end for;
  end for;
  annotation(gpuFunction = true);
end multiply;

function multiply_in_any_order "the same, by tensor cores where the card has them: sums in any order"
  input Real A[:, :];
  input Real B[size(A, 2), :];
  output Real C[size(A, 1), size(B, 2)];
protected
  Real s;
algorithm
  for i in 1:size(A, 1), j in 1:size(B, 2) loop
    s := 0;
    for k in 1:size(A, 2) loop
      s := s + A[i, k] * B[k, j];
    end for;
    C[i, j] := s;
  end for;
  annotation(gpuFunction = true, __Tribod_reorder = true);
end multiply_in_any_order;
