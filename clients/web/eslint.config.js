// ESLint for the dashboard: the strict and stylistic rules of typescript-eslint.
import tseslint from "typescript-eslint";

export default tseslint.config(
  { ignores: ["dist/**", "generated/**", "node_modules/**"] },
  ...tseslint.configs.strict,
  ...tseslint.configs.stylistic,
  {
    rules: {
      eqeqeq: "error",
      "no-console": "error",
      "no-eval": "error",
      "max-lines": ["error", 400],
      "@typescript-eslint/consistent-type-imports": "error",
    },
  },
);
