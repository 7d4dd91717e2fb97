// Dark and light: as the machine has it, unless the visitor chose.
import { set } from "./state.js";
import { currentTheme } from "./colour.js";

const KEY = "saccade theme";

export function rememberedTheme() {
  let kept = "";
  try {
    kept = localStorage.getItem(KEY) ?? "";
  } catch {
    kept = ""; // a file that is opened from a disk may have no storage
  }
  if (kept === "light" || kept === "dark") document.documentElement.dataset.theme = kept;
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => set({}));
}

export function otherTheme() {
  const theme = currentTheme() === "dark" ? "light" : "dark";
  document.documentElement.dataset.theme = theme;
  try {
    localStorage.setItem(KEY, theme);
  } catch {
    // it holds for this visit
  }
  set({ theme });
}
