// One ramp for weights, from nothing to all, its lightness always falling (or rising, in the dark): a table by half floats.
import { HALF } from "./numbers.js";

const RAMPS = {
  light: ["#ffffff", "#e9f0fd", "#c9dcfa", "#94b8f4", "#5b8def", "#2c62d6", "#173f9e", "#0a2159"],
  dark: ["#14171c", "#182540", "#1c3a70", "#2557ad", "#4381e6", "#7fafff", "#bdd6ff", "#f4f8ff"],
};
const CIVIDIS = ["#00224e", "#123570", "#3b496c", "#575d6d", "#707173", "#8a8678", "#a59c74", "#c3b369", "#e1cc55", "#fee838"];
const tables = new Map();

export function currentTheme() {
  const set = document.documentElement.dataset.theme;
  if (set === "light" || set === "dark") return set;
  return matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";
}

function channels(hex) {
  return [1, 3, 5].map((i) => parseInt(hex.slice(i, i + 2), 16));
}

function mixed(stops, share) {
  const at = Math.min(1, Math.max(0, share)) * (stops.length - 1);
  const below = Math.min(Math.floor(at), stops.length - 2);
  const one = channels(stops[below]);
  const other = channels(stops[below + 1]);
  return one.map((value, i) => Math.round(value + (other[i] - value) * (at - below)));
}

// Pixels for every half float; the root makes faint weights visible, and `top` is the weight that is darkest.
export function weightPixels(theme, top = 1) {
  const key = `${theme} ${top}`;
  if (!tables.has(key)) {
    const shades = new Uint32Array(1025);
    for (let i = 0; i <= 1024; i++) {
      const [r, g, b] = mixed(RAMPS[theme], i / 1024);
      shades[i] = (255 << 24) | (b << 16) | (g << 8) | r;
    }
    const table = new Uint32Array(65536);
    for (let bits = 0; bits < 65536; bits++) {
      const weight = Math.min(1, Math.max(0, HALF[bits] / top));
      table[bits] = shades[Math.round(1024 * Math.sqrt(weight))];
    }
    if (tables.size > 24) tables.clear();
    tables.set(key, table);
  }
  return tables.get(key);
}

export function weightColour(weight, theme = currentTheme(), top = 1) {
  const [r, g, b] = mixed(RAMPS[theme], Math.sqrt(Math.min(1, Math.max(0, weight / top))));
  return `rgb(${r} ${g} ${b})`;
}

// Light letters on dark fields.
export function inkOn(weight, theme = currentTheme(), top = 1) {
  const [r, g, b] = mixed(RAMPS[theme], Math.sqrt(Math.min(1, Math.max(0, weight / top))));
  return 0.299 * r + 0.587 * g + 0.114 * b > 140 ? "#1b1f24" : "#ffffff";
}

export function shadePixels(theme) {
  const key = `shades ${theme}`;
  if (!tables.has(key)) {
    const table = new Uint32Array(256);
    for (let i = 0; i < 256; i++) {
      const [r, g, b] = mixed(RAMPS[theme], i / 255);
      table[i] = (255 << 24) | (b << 16) | (g << 8) | r;
    }
    tables.set(key, table);
  }
  return tables.get(key);
}

export function cividis(share) {
  return mixed(CIVIDIS, share);
}

// Less is orange, more is blue; the sign is always written beside it.
export function differenceColour(value, largest, theme = currentTheme()) {
  const share = Math.min(1, Math.abs(value) / Math.max(largest, 1e-9));
  const base = theme === "dark" ? [20, 23, 28] : [255, 255, 255];
  const full = value < 0 ? (theme === "dark" ? [120, 53, 15] : [253, 174, 97]) : theme === "dark" ? [30, 64, 140] : [146, 197, 245];
  const mix = base.map((c, i) => Math.round(c + (full[i] - c) * Math.sqrt(share)));
  return `rgb(${mix[0]} ${mix[1]} ${mix[2]})`;
}
