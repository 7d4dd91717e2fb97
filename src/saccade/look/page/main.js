// The start: looks that stand in the file, or a server that is asked.
import { render } from "./vendor/preact.js";
import { html } from "./view.js";
import { App } from "./app.js";
import { chooseFirst, run } from "./doing.js";
import { listenToKeys } from "./keys.js";
import { readLink } from "./links.js";
import { RunRecord } from "./record.js";
import { listModels, takeToken } from "./server.js";
import { onChange, set, state } from "./state.js";
import { bytesOfBase64, readTensors } from "./wire.js";
import { rememberedTheme } from "./theme.js";

const root = document.getElementById("page");
rememberedTheme();
onChange(() => render(html`<${App} />`, root));
listenToKeys();
start();

async function start() {
  const data = document.getElementById("looks");
  try {
    if (data) openRecorded(bytesOfBase64(data.textContent));
    else await openLive();
  } catch (error) {
    set({ error: error.message });
  }
}

function openRecorded(bytes) {
  const { record, arrays } = readTensors(bytes);
  const all = record.runs.map((one, number) => new RunRecord(one, arrays, `run${number}/`));
  const runs = {};
  for (const one of all) {
    const letter = one.run.id.charAt(0);
    runs["ABCM".includes(letter) ? letter : "A"] = one;
  }
  runs.A ??= all[0];
  const { run } = runs.A;
  const changes = runs.B?.run.changes ?? [];
  set({
    live: false,
    models: [{ name: run.model, task: run.task, takes: run.input.kind === "file" ? "file" : "text", examples: [] }],
    model: run.model,
    text: run.input.text,
    runs,
    changes,
    showing: runs.B ? "B" : "A",
    beside: runs.M ? "M" : "",
    note: record.left_out ? `Not all is in this file: ${record.left_out}.` : "",
  });
  chooseFirst(runs.A, "A");
  if (runs.M) chooseFirst(runs.M, "M");
}

async function openLive() {
  set({ live: true });
  if (!takeToken()) {
    set({ error: "This address lacks its token: open the whole address that `saccade view` printed." });
    return;
  }
  const { models, first } = await listModels();
  const link = readLink(models);
  const model = link.model ?? first.model ?? models[0].name;
  const offered = models.find((one) => one.name === model);
  const file = first.file && !link.model ? { name: first.name, bytes: bytesOfBase64(first.file) } : null;
  const text = link.text ?? first.text ?? offered.examples[0] ?? "";
  set({ models, model, text, file, other: link.other ?? first.other ?? "", seed: link.seed ?? 0, changes: link.changes ?? [], view: link.view ?? state.view });
  if (link.head) set({ chosen: { ...state.chosen, A: link.head } });
  if (offered.takes === "text" || offered.takes === "pair" ? text : file) await run(true);
}
