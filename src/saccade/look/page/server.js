// What is asked of the server. In a file there is none, and `live` is false.
import { RunRecord } from "./record.js";
import { set, state } from "./state.js";
import { readFrames } from "./wire.js";

const TOKEN = "saccade token";

// The token comes in the part of the address that is never sent; it stays for this tab only.
export function takeToken() {
  const parameters = new URLSearchParams(location.hash.slice(1));
  const given = parameters.get("t");
  if (given) {
    sessionStorage.setItem(TOKEN, given);
    parameters.delete("t");
    history.replaceState(null, "", location.pathname + (String(parameters) ? `#${parameters}` : ""));
  }
  return sessionStorage.getItem(TOKEN) ?? "";
}

async function* ask(name, values, signal) {
  let response;
  try {
    response = await fetch(name, {
      method: "POST",
      headers: { "X-Saccade-Token": sessionStorage.getItem(TOKEN) ?? "", "Content-Type": "application/json" },
      body: JSON.stringify(values),
      signal,
    });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Error("the server is gone: what is here stays usable; start `saccade view` again for more");
  }
  if (!response.ok) throw new Error(await response.text());
  try {
    for await (const frame of readFrames(response.body)) {
      if (frame.json?.error) throw new Error(frame.json.error);
      yield frame;
    }
  } catch (error) {
    if (error instanceof TypeError) throw new Error("the server stopped in the middle of an answer: start `saccade view` again");
    throw error;
  }
}

async function once(name, values) {
  let found = null;
  for await (const frame of ask(name, values)) found = frame;
  return found;
}

export async function listModels() {
  return (await once("models", {})).json;
}

let counter = 0;
export function newId(letter) {
  counter += 1;
  return `${letter}-${Date.now().toString(36)}-${counter}`;
}

// Steps are reported as they come; the record when it is whole.
export async function runModel(values, onStep, signal) {
  let found = null;
  for await (const frame of ask("run", values, signal)) {
    if (frame.json?.step) onStep(frame.json.step);
    if (frame.tensors) found = new RunRecord(frame.tensors.record, frame.tensors.arrays);
  }
  return found;
}

export function stopRun(id) {
  if (state.live) once("cancel", { id }).catch(() => {});
}

const asked = new Set();

// A head's weights, if they are not here and can be had; whoever draws is told when they are.
export function wantPlane(run, look, plane) {
  const known = run.plane(look, plane);
  if (known || !state.live) return known;
  const key = `${run.run.id} ${look} ${plane}`;
  if (asked.has(key)) return null;
  asked.add(key);
  once("head", { run: run.run.id, look, plane })
    .then(({ tensors }) => {
      const { shape, data } = tensors.arrays.get("plane");
      run.keep(look, plane, { bits: data, rows: shape[0], columns: shape[1] });
      set({});
    })
    .catch((error) => set({ error: error.message }))
    .finally(() => asked.delete(key));
  return null;
}

export async function askInside(run, look, head, row) {
  const { tensors } = await once("inside", { run: run.run.id, look, head, row });
  return tensors;
}

export async function* sweepHeads(run, id) {
  for await (const frame of ask("sweep", { run: run.run.id, id })) yield frame.json;
}

export async function sharedPage(runs) {
  return (await once("share", { runs: runs.map((run) => run.run.id) })).json;
}

export async function explainRun(run, id, method, word) {
  return (await once("explain", { run: run.run.id, id, method, ...(word ? { word } : {}) })).json;
}
