/* Small Modelica functions with one output y and values worked out by hand.
 *
 * X(number, declaration of y, protected declarations, statements, tolerance, values of y) */
#define CASES(X)                                                                                   \
    /* arithmetic: section 10.6 of the language */                                                 \
    X(1, "Real y", "", "y := 1 + 2 * 3;", 0, 7)                                                    \
    X(2, "Real y", "", "y := (1 + 2) * 3;", 0, 9)                                                  \
    X(3, "Real y", "", "y := 7 / 2;", 0, 3.5)                                                      \
    X(4, "Real y", "", "y := -2 ^ 2;", 0, -4)                                                      \
    X(5, "Real y", "", "y := (-2) ^ 2;", 0, 4)                                                     \
    X(6, "Real y", "", "y := 2 ^ 10;", 0, 1024)                                                    \
    X(7, "Real y", "", "y := 2 ^ (-1);", 0, 0.5)                                                   \
    X(8, "Real y", "", "y := 1 - 2 - 3;", 0, -4)                                                   \
    X(9, "Real y", "", "y := 24 / 4 / 2;", 0, 3)                                                   \
    X(10, "Real y", "", "y := 1.5e2 + .5 + 2.;", 0, 152.5)                                         \
    X(11, "Integer y", "", "y := 7 - 10;", 0, -3)                                                  \
    X(12, "Integer y", "", "y := div(7, 2);", 0, 3)                                                \
    X(13, "Integer y", "", "y := div(-7, 2);", 0, -3)                                              \
    X(14, "Integer y", "", "y := mod(7, 3);", 0, 1)                                                \
    X(15, "Integer y", "", "y := mod(-7, 3);", 0, 2)                                               \
    X(16, "Integer y", "", "y := mod(7, -3);", 0, -2)                                              \
    X(17, "Integer y", "", "y := rem(-7, 3);", 0, -1)                                              \
    X(18, "Integer y", "", "y := rem(7, -3);", 0, 1)                                               \
    X(19, "Real y", "", "y := mod(3.0, 1.4);", 1e-15, 0.2)                                         \
    X(20, "Real y", "", "y := mod(-3.0, 1.4);", 1e-15, 1.2)                                        \
    X(21, "Real y", "", "y := mod(3, -1.4);", 1e-15, -1.2)                                         \
    X(22, "Real y", "", "y := rem(3.0, 1.4);", 1e-15, 0.2)                                         \
    X(23, "Real y", "", "y := rem(-3.0, 1.4);", 1e-15, -0.2)                                       \
    X(24, "Real y", "", "y := div(-7.5, 2);", 0, -3)                                               \
    X(25, "Integer y", "", "y := integer(-1.5);", 0, -2)                                           \
    X(26, "Integer y", "", "y := integer(3.999);", 0, 3)                                           \
    X(27, "Real y", "", "y := floor(-1.5);", 0, -2)                                                \
    X(28, "Real y", "", "y := ceil(-1.5);", 0, -1)                                                 \
    X(29, "Real y", "", "y := abs(-3);", 0, 3)                                                     \
    X(30, "Integer y", "", "y := sign(-0.5);", 0, -1)                                              \
    X(31, "Integer y", "", "y := sign(0.0);", 0, 0)                                                \
    X(32, "Real y", "", "y := max(2, 3.5);", 0, 3.5)                                               \
    X(33, "Integer y", "", "y := min(2, -3);", 0, -3)                                              \
    X(34, "Integer y", "", "y := 3 * (2 - 5);", 0, -9)                                             \
    X(35, "Real y", "", "y := 1e308 * 1e-308;", 1e-15, 1)                                          \
    /* mathematics */                                                                              \
    X(36, "Real y", "", "y := sqrt(2);", 0, 1.4142135623730951)                                    \
    X(37, "Real y", "", "y := sin(1);", 2e-16, 0.8414709848078965)                                 \
    X(38, "Real y", "", "y := cos(1);", 2e-16, 0.5403023058681398)                                 \
    X(39, "Real y", "", "y := tan(1);", 3e-16, 1.5574077246549023)                                 \
    X(40, "Real y", "", "y := asin(1);", 2e-16, 1.5707963267948966)                                \
    X(41, "Real y", "", "y := acos(-1);", 2e-16, 3.141592653589793)                                \
    X(42, "Real y", "", "y := atan(1);", 2e-16, 0.7853981633974483)                                \
    X(43, "Real y", "", "y := atan2(-1, -1);", 2e-16, -2.356194490192345)                          \
    X(44, "Real y", "", "y := sinh(1);", 2e-16, 1.1752011936438014)                                \
    X(45, "Real y", "", "y := cosh(1);", 2e-16, 1.5430806348152437)                                \
    X(46, "Real y", "", "y := tanh(1);", 2e-16, 0.7615941559557649)                                \
    X(47, "Real y", "", "y := exp(1);", 2e-16, 2.718281828459045)                                  \
    X(48, "Real y", "", "y := log(10);", 2e-16, 2.302585092994046)                                 \
    X(49, "Real y", "", "y := log10(1000);", 2e-16, 3)                                             \
    X(50, "Real y", "", "y := Modelica.Math.sin(Modelica.Constants.pi / 6);", 2e-16, 0.5)          \
    X(51, "Real y", "", "y := 2.5 ^ 3;", 0, 15.625)                                                \
    X(52, "Real y", "", "y := 0 ^ 0;", 0, 1)                                                       \
    X(53, "Real y", "", "y := noEvent(smooth(1, 4));", 0, 4)                                       \
    /* Boolean */                                                                                  \
    X(54, "Boolean y", "", "y := 1 < 2 and 2 <= 2;", 0, 1)                                         \
    X(55, "Boolean y", "", "y := 1 > 2 or 2 >= 3;", 0, 0)                                          \
    X(56, "Boolean y", "", "y := not 1 == 2;", 0, 1)                                               \
    X(57, "Boolean y", "", "y := 1 <> 1.5;", 0, 1)                                                 \
    X(58, "Boolean y", "", "y := true and not false;", 0, 1)                                       \
    X(59, "Boolean y", "", "y := true == false;", 0, 0)                                            \
    X(60, "Boolean y", "Real a[2] = {1, 2};", "y := 3 <= 2 and a[3] > 0;", 0, 0)                   \
    X(61, "Boolean y", "Real a[2] = {1, 2};", "y := 1 <= 2 or a[3] > 0;", 0, 1)                    \
    X(62, "Boolean y", "", "y := false and sum({1, 2}) > 2 or true;", 0, 1)                        \
    /* conditions */                                                                               \
    X(63, "Real y", "", "y := if 1 < 2 then 3 else 4.5;", 0, 3)                                    \
    X(64, "Real y", "", "y := if false then 1 elseif true then 2 else 3;", 0, 2)                   \
    X(65, "Real y[2]", "", "y := if 1 > 2 then {1, 2} else {3, 4};", 0, 3, 4)                      \
    X(66, "Real y", "", "if 1 > 2 then y := 1; elseif 2 > 1 then y := 2; else y := 3; end if;", 0, \
      2)                                                                                           \
    X(67, "Real y", "", "y := 5; if false then y := 1; end if;", 0, 5)                             \
    X(68, "Real y", "Real a[1] = {2};", "y := if 2 > 1 then a[1] else a[2];", 0, 2)                \
    X(69, "Real y", "", "y := if sum({1, 1}) > 1 then sum({4, 5}) else product({2, 2});", 0, 9)    \
    /* loops */                                                                                    \
    X(70, "Integer y", "", "y := 0; for i in 1:10 loop y := y + i; end for;", 0, 55)               \
    X(71, "Integer y", "", "y := 0; for i in 10:-3:1 loop y := y + i; end for;", 0, 22)            \
    X(72, "Integer y", "", "y := 0; for i in 3:2 loop y := 1; end for;", 0, 0)                     \
    X(73, "Real y", "", "y := 0; for x in 0:0.25:1 loop y := y + x; end for;", 0, 2.5)             \
    X(74, "Real y", "", "y := 0; for x in {1.5, 2.5, 4} loop y := y + x; end for;", 0, 8)          \
    X(75, "Integer y", "", "y := 0; for i in 1:3, j in 1:i loop y := y + j; end for;", 0, 10)      \
    X(76, "Integer y", "", "y := 1; while y < 100 loop y := 2 * y; end while;", 0, 128)            \
    X(77, "Integer y", "",                                                                         \
      "y := 0; for i in 1:10 loop if i > 4 then break; end if; y := i; "                           \
      "end for;",                                                                                  \
      0, 4)                                                                                        \
    X(78, "Integer y", "",                                                                         \
      "y := 0; while true loop y := y + 1; if y == 7 then break; end if; "                         \
      "end while;",                                                                                \
      0, 7)                                                                                        \
    X(79, "Integer y", "", "y := 1; return; y := 2;", 0, 1)                                        \
    X(80, "Integer y", "",                                                                         \
      "y := 0; for i in 1:3 loop for j in 1:3 loop if j == 2 then break; "                         \
      "end if; y := y + 1; end for; end for;",                                                     \
      0, 3)                                                                                        \
    X(81, "Integer y", "Integer n = 3;", "y := 0; for i in 1:n loop y := y + n; end for;", 0, 9)   \
    X(82, "Integer y", "Integer n;",                                                               \
      "n := 2; y := 0; for i in 1:n loop n := 5; y := y + i; "                                     \
      "end for;",                                                                                  \
      0, 3)                                                                                        \
    X(83, "Integer y", "",                                                                         \
      "y := 0; for i in 1:100 loop if i > 3 then return; end if; y := i; "                         \
      "end for;",                                                                                  \
      0, 3)                                                                                        \
    X(84, "Integer y", "", "y := 0; for i in 1:2:7 loop y := 10 * y + i; end for;", 0, 1357)       \
    /* arrays: constructors and ranges */                                                          \
    X(85, "Real y[3]", "", "y := {1, 2, 3.5};", 0, 1, 2, 3.5)                                      \
    X(86, "Real y[2, 2]", "", "y := [1, 2; 3, 4];", 0, 1, 2, 3, 4)                                 \
    X(87, "Real y[2, 2]", "", "y := {{1, 2}, {3, 4}};", 0, 1, 2, 3, 4)                             \
    X(88, "Real y[:]", "", "y := 1:4;", 0, 1, 2, 3, 4)                                             \
    X(89, "Real y[:]", "", "y := 0:0.5:1;", 0, 0, 0.5, 1)                                          \
    X(90, "Integer y[:]", "", "y := 5:-2:1;", 0, 5, 3, 1)                                          \
    X(91, "Integer y", "", "y := size(1:0, 1);", 0, 0)                                             \
    X(92, "Real y[3]", "", "y := fill(2.5, 3);", 0, 2.5, 2.5, 2.5)                                 \
    X(93, "Real y[2, 2]", "", "y := identity(2);", 0, 1, 0, 0, 1)                                  \
    X(94, "Real y[2]", "", "y := zeros(2) + ones(2);", 0, 1, 1)                                    \
    X(95, "Real y[5]", "", "y := linspace(0, 1, 5);", 0, 0, 0.25, 0.5, 0.75, 1)                    \
    X(96, "Real y[2, 2]", "", "y := diagonal({3, 4});", 0, 3, 0, 0, 4)                             \
    X(97, "Integer y[3]", "", "y := {i * i for i in 1:3};", 0, 1, 4, 9)                            \
    X(98, "Integer y[3, 2]", "", "y := {10 * i + j for i in 1:2, j in 1:3};", 0, 11, 21, 12, 22,   \
      13, 23)                                                                                      \
    X(99, "Integer y[2, 3]", "", "y := {{i + j for j in 1:3} for i in 1:2};", 0, 2, 3, 4, 3, 4, 5) \
    X(100, "Real y[4]", "", "y := cat(1, {1, 2}, {3}, {4.5});", 0, 1, 2, 3, 4.5)                   \
    X(101, "Real y[2, 3]", "", "y := cat(2, [1; 2], [3, 4; 5, 6]);", 0, 1, 3, 4, 2, 5, 6)          \
    X(102, "Real y[3, 2]", "", "y := [[1, 2]; 3, 4; {5}, {6}];", 0, 1, 2, 3, 4, 5, 6)              \
    X(103, "Real y[3, 1]", "", "y := [{1, 2, 3}];", 0, 1, 2, 3)                                    \
    /* arrays: subscripts */                                                                       \
    X(104, "Real y", "Real a[3] = {4, 5, 6};", "y := a[2];", 0, 5)                                 \
    X(105, "Real y", "Real a[3] = {4, 5, 6};", "y := a[end];", 0, 6)                               \
    X(106, "Real y[2]", "Real a[3] = {4, 5, 6};", "y := a[2:end];", 0, 5, 6)                       \
    X(107, "Real y[2]", "Real a[3] = {4, 5, 6};", "y := a[{3, 1}];", 0, 6, 4)                      \
    X(108, "Real y[2]", "Real a[2, 2] = [1, 2; 3, 4];", "y := a[:, 2];", 0, 2, 4)                  \
    X(109, "Real y[2]", "Real a[2, 2] = [1, 2; 3, 4];", "y := a[2, :];", 0, 3, 4)                  \
    X(110, "Real y[2]", "Real a[2, 2] = [1, 2; 3, 4];", "y := a[2];", 0, 3, 4)                     \
    X(111, "Real y[2]", "Real a[5] = {1, 2, 3, 4, 5};", "y := a[1:3:5];", 0, 1, 4)                 \
    X(112, "Real y[3]", "", "y := {1, 2, 3}; y[2] := 9;", 0, 1, 9, 3)                              \
    X(113, "Real y[3]", "", "y := zeros(3); y[2:3] := {7, 8};", 0, 0, 7, 8)                        \
    X(114, "Real y[2, 2]", "", "y := zeros(2, 2); y[:, 1] := {1, 2}; y[1, 2] := 5;", 0, 1, 5, 2,   \
      0)                                                                                           \
    X(115, "Real y[3]", "", "y := {1, 2, 3}; y[2:3] := y[1:2];", 0, 1, 1, 2)                       \
    X(116, "Real y[3]", "", "y := {1, 2, 3}; y := y[{3, 2, 1}];", 0, 3, 2, 1)                      \
    X(117, "Real y[3]", "", "y := {1, 2, 3}; y[{1, 3}] := y[{3, 1}];", 0, 3, 2, 1)                 \
    X(118, "Real y", "Integer k[2] = {2, 1}; Real a[2] = {8, 9};", "y := a[k[1]];", 0, 9)          \
    X(119, "Real y", "Real a[2, 3] = {{1, 2, 3}, {4, 5, 6}};", "y := a[end, end - 1];", 0, 5)      \
    X(120, "Real y[2, 2]", "Real a[3, 3] = {{1, 2, 3}, {4, 5, 6}, {7, 8, 9}};",                    \
      "y := a[2:3, {1, 3}];", 0, 4, 6, 7, 9)                                                       \
    X(121, "Integer y[:]", "", "y := {1}; y := cat(1, y, {2}); y := cat(1, y, y);", 0, 1, 2, 1, 2) \
    X(122, "Real y[2]", "Real a[2, 2, 2] = {{{1, 2}, {3, 4}}, {{5, 6}, {7, 8}}};",                 \
      "y := a[2, :, 1];", 0, 5, 7)                                                                 \
    /* arrays: operators */                                                                        \
    X(123, "Real y[2]", "", "y := {1, 2} + {3, 4};", 0, 4, 6)                                      \
    X(124, "Real y[2]", "", "y := 2 * {1, 2};", 0, 2, 4)                                           \
    X(125, "Real y[2]", "", "y := {1, 2} / 2;", 0, 0.5, 1)                                         \
    X(126, "Real y[2]", "", "y := {2, 3} .* {4, 5};", 0, 8, 15)                                    \
    X(127, "Real y[2]", "", "y := {2, 3} ./ {4, 2};", 0, 0.5, 1.5)                                 \
    X(128, "Real y[2]", "", "y := {2, 3} .^ 2;", 0, 4, 9)                                          \
    X(129, "Real y[2]", "", "y := 2 .^ {2, 3};", 0, 4, 8)                                          \
    X(130, "Real y[2]", "", "y := 1 .+ {1, 2} .- 0.5;", 0, 1.5, 2.5)                               \
    X(131, "Real y[2]", "", "y := -{1, 2};", 0, -1, -2)                                            \
    X(132, "Real y", "", "y := {1, 2, 3} * {4, 5, 6};", 0, 32)                                     \
    X(133, "Real y[2]", "", "y := [1, 2; 3, 4] * {5, 6};", 0, 17, 39)                              \
    X(134, "Real y[2]", "", "y := {5, 6} * [1, 2; 3, 4];", 0, 23, 34)                              \
    X(135, "Real y[2, 2]", "", "y := [1, 2; 3, 4] * [5, 6; 7, 8];", 0, 19, 22, 43, 50)             \
    X(136, "Real y[2, 2]", "", "y := transpose([1, 2; 3, 4]);", 0, 1, 3, 2, 4)                     \
    X(137, "Real y[2, 2]", "", "y := [1, 2; 3, 4]; y := transpose(y);", 0, 1, 3, 2, 4)             \
    X(138, "Real y[2, 2]", "", "y := [1, 2; 3, 4]; y := y * y;", 0, 7, 10, 15, 22)                 \
    X(139, "Real y[2]", "", "y := {1, 2}; y := y + 2 * y;", 0, 3, 6)                               \
    X(140, "Real y[2]", "", "y := sin({0, 0}) + cos({0, 0});", 0, 1, 1)                            \
    X(141, "Real y[2]", "", "y := abs({-1, 2});", 0, 1, 2)                                         \
    X(142, "Real y[2]", "", "y := 2 * {1, 2} * 3;", 0, 6, 12)                                      \
    X(143, "Integer y[2]", "", "y := {7, 9} - {1, 2};", 0, 6, 7)                                   \
    X(144, "Real y[3]", "", "y := cross({1, 0, 0}, {0, 1, 0});", 0, 0, 0, 1)                       \
    X(145, "Real y[3]", "", "y := cross({1, 2, 3}, {4, 5, 6});", 0, -3, 6, -3)                     \
    X(146, "Real y[3]", "", "y := skew({1, 2, 3}) * {4, 5, 6};", 0, -3, 6, -3)                     \
    X(147, "Real y[2, 2]", "", "y := outerProduct({1, 2}, {3, 4});", 0, 3, 4, 6, 8)                \
    X(148, "Real y[2, 2]", "", "y := symmetric([1, 2; 3, 4]);", 0, 1, 2, 2, 4)                     \
    /* arrays: reductions and sizes */                                                             \
    X(149, "Real y", "", "y := sum({1, 2, 3.5});", 0, 6.5)                                         \
    X(150, "Integer y", "", "y := sum([1, 2; 3, 4]);", 0, 10)                                      \
    X(151, "Integer y", "", "y := product({2, 3, 4});", 0, 24)                                     \
    X(152, "Real y", "", "y := max({1, 7, 3});", 0, 7)                                             \
    X(153, "Real y", "", "y := min({4, -7.5, 3});", 0, -7.5)                                       \
    X(154, "Integer y", "", "y := sum(i for i in 1:10);", 0, 55)                                   \
    X(155, "Integer y", "", "y := sum(i * j for i in 1:3, j in 1:2);", 0, 18)                      \
    X(156, "Real y", "Real a[3] = {3, 1, 2};", "y := max(a[i] - i for i in 1:3);", 0, 2)           \
    X(157, "Integer y", "", "y := product(i for i in 1:5);", 0, 120)                               \
    X(158, "Real y", "", "y := sum({i for i in 1:0});", 0, 0)                                      \
    X(159, "Integer y[2]", "", "y := size([1, 2, 3; 4, 5, 6]);", 0, 2, 3)                          \
    X(160, "Integer y", "", "y := size([1, 2, 3; 4, 5, 6], 2);", 0, 3)                             \
    X(161, "Integer y", "Real a[2, 3, 4];", "y := ndims(a) + size(a, 3);", 0, 7)                   \
    X(162, "Integer y", "Real a[2, 3]; Integer k;", "k := 2; y := size(a, k);", 0, 3)              \
    X(163, "Real y", "", "y := scalar([5]);", 0, 5)                                                \
    X(164, "Real y[3]", "", "y := vector([1; 2; 3]);", 0, 1, 2, 3)                                 \
    X(165, "Real y[2, 1]", "", "y := matrix({1, 2});", 0, 1, 2)                                    \
    X(166, "Real y", "", "y := sum({sqrt(x) for x in {1.0, 4.0, 9.0}});", 0, 6)                    \
    /* declarations */                                                                             \
    X(167, "Real y = 4", "", "", 0, 4)                                                             \
    X(168, "Real y", "Real a = b + 1; Real b = 2;", "y := a;", 0, 3)                               \
    X(169, "Real y", "constant Real c = 2.5; parameter Integer n = 2;", "y := n * c;", 0, 5)       \
    X(170, "Real y[n]", "Integer n = 2;", "y := {1, 2};", 0, 1, 2)                                 \
    X(171, "Real y", "Real a[:] = {1, 2, 3};", "y := a * a;", 0, 14)                               \
    X(172, "Real y", "", "y := GRAVITY * 2;", 1e-15, 19.62)                                        \
    X(173, "Real y", "", "y := Inner.TWICE;", 0, 6)                                                \
    X(174, "Real y", "Length a(unit = \"m\", min = 0) = 3 \"a length\";", "y := a;", 0, 3)         \
    X(175, "Real y", "Real[2] a = {3, 4};", "y := a * a;", 0, 25)                                  \
    X(176, "Real y", "", "y := sum(WEIGHTS) + WEIGHTS[2];", 0, 8)                                  \
    X(177, "Real y", "Modelica.Units.SI.Length a = 3;", "y := a;", 0, 3)                           \
    X(178, "Real y", "Real 'a b' = 5;", "y := 'a b';", 0, 5)                                       \
    /* records */                                                                                  \
    X(179, "Real y", "Point p;", "p.x := 3; p.v := {1, 2}; y := p.x + p.v[2];", 0, 5)              \
    X(180, "Real y", "Point p = Point(1, {2, 3});", "y := p.v * p.v + p.x;", 0, 14)                \
    X(181, "Real y", "Point p = Point(v = {2, 3}, x = 4);", "y := p.x;", 0, 4)                     \
    X(182, "Real y", "Point p; Point q;",                                                          \
      "p := Point(1, {2, 3}); q := p; p.x := 9; "                                                  \
      "y := q.x + q.v[1];",                                                                        \
      0, 3)                                                                                        \
    X(183, "Real y", "Point p[2];", "p[2].v[1] := 7; p[1].x := 2; y := p[2].v[1] + p[1].x;", 0, 9) \
    X(184, "Real y", "Segment s;",                                                                 \
      "s.a := Point(1, {2, 3}); s.b.x := 4; "                                                      \
      "y := s.a.v[2] + s.b.x;",                                                                    \
      0, 7)                                                                                        \
    X(185, "Real y", "Point p;", "p := move(Point(1, {2, 3}), 10); y := p.x + p.v[1];", 0, 13)     \
    X(186, "Real y", "Point p = Point(2, {5, 6});",                                                \
      "p := Point(p.v[1], {p.x, p.x}); "                                                           \
      "y := 10 * p.x + p.v[1];",                                                                   \
      0, 52)                                                                                       \
    X(187, "Real y[2]", "Point p[2];", "p[1].x := 3; p[2].x := 4; y := p.x;", 0, 3, 4)             \
    /* calls */                                                                                    \
    X(188, "Real y", "", "y := twice(4);", 0, 8)                                                   \
    X(189, "Real y", "", "y := twice(x = twice(1));", 0, 4)                                        \
    X(190, "Real y", "", "y := shifted(3);", 0, 4)                                                 \
    X(191, "Real y", "", "y := shifted(3, by = 5);", 0, 8)                                         \
    X(192, "Real y", "Real b;", "(y, b) := both(3, 4); y := 10 * y + b;", 0, 82)                   \
    X(193, "Real y", "", "(, y) := both(3, 4);", 0, 12)                                            \
    X(194, "Real y", "", "y := both(3, 4);", 0, 7)                                                 \
    X(195, "Integer y", "", "y := factorial(5);", 0, 120)                                          \
    X(196, "Real y[3]", "", "y := scaled({1, 2, 3}, 2);", 0, 2, 4, 6)                              \
    X(197, "Real y[2]", "", "y := scaled({1, 2, 3}, 2)[2:3] + {0, 0};", -1, 4, 6)                  \
    X(198, "Real y[2]", "", "y := {1, 2}; y := scaled(y, 3);", 0, 3, 6)                            \
    X(199, "Real y", "", "y := Inner.cube(2) + Inner.cube(1);", 0, 9)                              \
    X(200, "Real y", "Integer i;",                                                                 \
      "i := 0; y := 0; while twice(i) < 7 loop i := i + 1; "                                       \
      "y := y + twice(i); end while;",                                                             \
      0, 20)                                                                                       \
    X(201, "Real y", "", "y := defaulted();", 0, 6)                                                \
    X(202, "Real y", "", "y := if factorial(3) > 5 and twice(1) < 3 then 1 else 0;", 0, 1)         \
    X(203, "Real y", "", "assert(1 < 2, \"one \" + \"two\"); y := 1;", 0, 1)                       \
    X(204, "Real y[2, 2]", "", "for i in 1:2, j in 1:2 loop y[i, j] := 10 * i + j; end for;", 0,   \
      11, 12, 21, 22)                                                                              \
    X(205, "Real y", "Real a[3] = {1, 2, 3};", "y := sum(a[2:3] .* a[1:2]);", 0, 8)                \
    X(206, "Real y", "", "y := sum({{i * j for j in 1:2} for i in 1:3}[1:3, 2]);", -1, 12)

/* Functions that the cases call. */
#define CASES_HELPERS                                                                              \
    "  constant Real GRAVITY = 9.81;\n"                                                            \
    "  constant Integer WEIGHTS[3] = {1, 2, 3};\n"                                                 \
    "  type Length = Real(final quantity = \"Length\", final unit = \"m\");\n"                     \
    "  record Point \"a point\" Real x; Real v[2]; end Point;\n"                                   \
    "  record Segment Point a; Point b; end Segment;\n"                                            \
    "  package Inner constant Real TWICE = 2 * BASE; constant Real BASE = 3;\n"                    \
    "    function cube input Real x; output Real y; algorithm y := x ^ 3; end cube;\n"             \
    "  end Inner;\n"                                                                               \
    "  function twice input Real x; output Real y; algorithm y := 2 * x; end twice;\n"             \
    "  function shifted input Real x; input Real by = 1; output Real y;\n"                         \
    "    algorithm y := x + by; end shifted;\n"                                                    \
    "  function both input Real a; input Real b; output Real s; output Real p;\n"                  \
    "    algorithm s := a + b; p := a * b; end both;\n"                                            \
    "  function factorial input Integer n; output Integer y;\n"                                    \
    "    algorithm y := if n <= 1 then 1 else n * factorial(n - 1); end factorial;\n"              \
    "  function scaled input Real v[:]; input Real by; output Real y[size(v, 1)];\n"               \
    "    algorithm for i in 1:size(v, 1) loop y[i] := by * v[i]; end for; end scaled;\n"           \
    "  function defaulted input Real v[:] = {1, 2, 3}; input Integer n = size(v, 1);\n"            \
    "    output Real y; algorithm y := sum(v) + n - size(v, 1); end defaulted;\n"                  \
    "  function move input Point p; input Real d; output Point q;\n"                               \
    "    algorithm q := p; q.x := q.x + d; end move;\n"
