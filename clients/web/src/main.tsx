import { render } from "preact";

import { App } from "./app";
import "./style.css";
import { watchHealth } from "./wire/health";

watchHealth();
const root = document.getElementById("app");
if (root) render(<App />, root);
