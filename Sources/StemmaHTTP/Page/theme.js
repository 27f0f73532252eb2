// Light, dark, or what the system says.
import { announce } from "./notice.js";

const name = "stemma.theme";
const themes = ["system", "light", "dark"];
let onChange = () => {};

export const theme = () => {
  const kept = localStorage.getItem(name);
  return themes.includes(kept) ? kept : "system";
};

const apply = () => {
  if (theme() === "system") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = theme();
  onChange(theme());
};

export const nextTheme = () => {
  localStorage.setItem(name, themes[(themes.indexOf(theme()) + 1) % themes.length]);
  apply();
  announce(`Theme: ${theme()}`);
};

export const startTheme = (f) => { onChange = f; apply(); };
