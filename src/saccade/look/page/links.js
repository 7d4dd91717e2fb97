// The address keeps what is shown, so that it can be opened again: input, model, changes, head. Never the token.
import { state } from "./state.js";

export function keepLink() {
  if (!state.live) return;
  history.replaceState(null, "", `${location.pathname}#${linkParameters()}`);
}

export function linkParameters() {
  const parameters = new URLSearchParams();
  parameters.set("model", state.model);
  if (state.text) parameters.set("input", state.text);
  if (state.other) parameters.set("other", state.other);
  if (state.seed) parameters.set("seed", String(state.seed));
  if (state.changes.length) parameters.set("changes", JSON.stringify(state.changes));
  const { look, plane } = state.chosen.A;
  if (look >= 0) parameters.set("head", `${look}.${plane}`);
  if (state.view !== "both") parameters.set("view", state.view);
  return parameters;
}

// What a link says, as far as it can be meant.
export function readLink(models) {
  const parameters = new URLSearchParams(location.hash.slice(1));
  const known = (name) => models.some((one) => one.name === name || `${one.name}@int8` === name);
  const found = {};
  if (known(parameters.get("model"))) found.model = parameters.get("model");
  if (parameters.has("input")) found.text = parameters.get("input").slice(0, 100_000);
  if (known(parameters.get("other"))) found.other = parameters.get("other");
  const seed = Number(parameters.get("seed"));
  if (Number.isInteger(seed) && seed > 0) found.seed = seed;
  const head = /^(\d{1,5})\.(\d{1,5})$/.exec(parameters.get("head") ?? "");
  if (head) found.head = { look: Number(head[1]), plane: Number(head[2]) };
  if (["both", "matrix", "lines", "table", "picture", "sound"].includes(parameters.get("view"))) found.view = parameters.get("view");
  try {
    const changes = JSON.parse(parameters.get("changes") ?? "[]");
    if (Array.isArray(changes)) found.changes = changes.filter((one) => one && typeof one === "object").slice(0, 200);
  } catch {
    found.changes = [];
  }
  return found;
}
