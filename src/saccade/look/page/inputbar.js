// Model, input, Run, and what concerns the whole page.
import { html } from "./view.js";
import { cancel, run, runOther } from "./doing.js";
import { exportJson, exportPicture, shareFile, copyLink } from "./exports.js";
import { currentTheme } from "./colour.js";
import { modelName } from "./record.js";
import { nothingChosen, set, state } from "./state.js";
import { otherTheme } from "./theme.js";

const LARGEST_FILE = 20 * 2 ** 20;
const TASKS = {
  translation: "translates",
  language: "continues a text",
  masked: "fills [MASK]",
  tagging: "tags words",
  classification: "classifies",
  correction: "mends spelling",
  pronunciation: "pronounces",
  pictures: "says what is in a picture",
  reading: "reads a picture",
  captioning: "tells what a picture shows",
  questions: "answers about a picture",
  walking: "follows commands",
  routes: "walks through a maze",
  speech: "writes down speech",
};
const NEEDS = "needs the model: saccade view";

function offered(name) {
  return state.models.find((one) => one.name === name) ?? { takes: "text", examples: [], task: "" };
}

export function takesFile(name = state.model) {
  return !["text", "pair"].includes(offered(name).takes);
}

function chooseModel(event) {
  const model = event.target.value;
  const examples = offered(model).examples;
  const other = state.other.includes("@") || offered(state.other).takes !== offered(model).takes ? "" : state.other;
  const known = state.models.some((one) => one.examples.includes(state.text));
  set({ model, other, changes: [], undone: [], text: known && examples.length ? examples[0] : state.text, seed: 0, chosen: nothingChosen() });
  if (!takesFile(model) || state.file) run();
}

function chooseOther(event) {
  const other = event.target.value;
  const { M, ...runs } = state.runs;
  set({ other, runs, beside: "" });
  if (other) runOther();
}

function onKey(event) {
  if (event.key === "Enter" && !event.shiftKey && !event.isComposing) {
    event.preventDefault();
    run();
  } else if (event.key === "Escape") {
    cancel();
  }
}

// A picture or a sound; a drawing in SVG is a program, and is not taken.
export async function takeFile(file) {
  if (!file) return;
  if (!takesFile()) {
    const able = state.models.find((one) => takesFile(one.name));
    const hint = able ? `choose ${able.name}` : "none of the models here reads pictures: saccade view MY-MODEL";
    set({ error: `${state.model} reads text; for ${file.name || "this file"} ${hint}` });
    return;
  }
  if (/svg/i.test(file.type) || /\.svgz?$/i.test(file.name)) {
    set({ error: "SVG is refused: it can hold programs. Give a PNG or JPEG." });
    return;
  }
  if (file.size > LARGEST_FILE) {
    set({ error: `${file.name}: ${(file.size / 2 ** 20).toFixed(0)} MB; at most ${LARGEST_FILE / 2 ** 20} MB are read` });
    return;
  }
  set({ file: { name: file.name || "pasted", bytes: new Uint8Array(await file.arrayBuffer()) } });
  run();
}

export function listenForFiles() {
  addEventListener("dragover", (event) => event.preventDefault());
  addEventListener("drop", (event) => {
    event.preventDefault();
    if (!state.live) return;
    const file = event.dataTransfer?.files[0];
    const text = event.dataTransfer?.getData("text/plain");
    if (file) takeFile(file);
    else if (text && !takesFile()) {
      set({ text });
      run();
    }
  });
  addEventListener("paste", (event) => {
    const file = [...(event.clipboardData?.files ?? [])][0];
    if (file && state.live) {
      event.preventDefault();
      takeFile(file);
    }
  });
}

function Examples() {
  const examples = offered(state.model).examples;
  if (!state.live || !examples.length) return null;
  return html`<div class="examples">
    <span class="faint">Try</span>
    ${examples.map(
      (text) => html`<button class="quiet" aria-pressed=${state.text === text} onClick=${() => { set({ text }); run(); }}>${text}</button>`,
    )}
  </div>`;
}

export function InputBar() {
  const { live, models, model, other, text, file, busy } = state;
  const files = takesFile();
  const asks = offered(model).takes.includes("question");
  const mates = models.filter((one) => one.takes === offered(model).takes && one.name !== model);
  const offerName = (one) => `${modelName(one.name)}${TASKS[one.task] ? ` · ${TASKS[one.task]}` : ""}`;
  return html`
    <header class="bar">
      <h1 class="mark"><svg viewBox="0 0 32 32" aria-hidden="true"><path d="M2 16C7 8 12 5 16 5s9 3 14 11c-5 8-10 11-14 11S7 24 2 16Z" /><circle cx="16" cy="16" r="7" class="white" /><circle cx="18.500" cy="14" r="3.500" /></svg>Saccade</h1>
      <div class="models">
        <label><span class="unseen">Model</span>
          <select value=${model} onChange=${chooseModel} disabled=${!live} title=${live ? "The model" : NEEDS}>
            ${models.map((one) => html`<option value=${one.name}>${offerName(one)}</option>`)}
          </select>
        </label>
        ${live && html`<label><span class="unseen">Compare with</span>
          <select value=${other} onChange=${chooseOther} class=${other ? "" : "faint"}>
            <option value="">+ compare</option>
            ${mates.map((one) => html`<option value=${one.name}>with ${modelName(one.name)}</option>`)}
            ${!/@/.test(model) && html`<option value=${`${model}@int8`}>with itself in int8</option>`}
          </select></label>`}
      </div>
      <div class="doors">
        <button class="opens" onClick=${() => set({ dialog: state.dialog === "share" ? "" : "share" })} aria-expanded=${state.dialog === "share"} disabled=${!state.runs.A}>Share</button>
        <button onClick=${() => set({ tour: 0 })} title="A tour in five steps">Tour</button>
        <button onClick=${() => set({ dialog: "keys" })} aria-label="Keys" title="Keys (?)">?</button>
        <button onClick=${otherTheme} aria-label=${currentTheme() === "dark" ? "Light colours" : "Dark colours"} title="Dark or light">◐</button>
      </div>
      ${state.dialog === "share" && html`<div class="menu" role="group" aria-label="Share">
        <button onClick=${shareFile} disabled=${!live} title=${live ? "" : NEEDS}>Page in one file (.html)${live ? "" : ": this is one"}</button>
        <button onClick=${() => exportPicture("png")}>Picture (.png)</button>
        <button onClick=${() => exportPicture("svg")}>Drawing (.svg)</button>
        <button onClick=${exportJson}>Numbers (.json)</button>
        <button onClick=${copyLink} disabled=${!live} title=${live ? "" : NEEDS}>Copy link</button>
      </div>`}
      <form class="ask" onSubmit=${(event) => { event.preventDefault(); run(); }}>
        ${files && html`<label class=${file ? "filebox has" : "filebox"}>
          <input type="file" class="unseen" accept=${offered(model).takes === "sound" ? "audio/*" : "image/png,image/jpeg,image/webp,image/gif,image/bmp"} disabled=${!live} onChange=${(event) => takeFile(event.target.files[0])} />
          ${file ? file.name : "Drop, paste or choose a file"}
        </label>`}
        ${(!files || asks) && html`<label class="field"><span class="unseen">${asks ? "Question" : "Input"}</span>
          <textarea id="input" rows="1" dir="auto" spellcheck="false" disabled=${!live} title=${live ? "Enter runs, Shift+Enter breaks the line" : NEEDS}
            value=${text} onInput=${(event) => set({ text: event.target.value })} onKeyDown=${onKey}
            placeholder=${asks ? "What do you ask about the picture?" : "Type something, and press Enter"}></textarea></label>`}
        ${busy
          ? html`<button type="button" class="main" onClick=${cancel}>Stop</button>`
          : html`<button type="submit" class="main" disabled=${!live} title=${live ? "Enter" : NEEDS}>Run</button>`}
        ${live && offered(model).task === "language" && html`<button type="button" title="Another draw: the next random seed" onClick=${() => { set({ seed: state.seed + 1 }); run(); }}>Draw again</button>`}
      </form>
      <${Examples} />
      ${!live && state.runs.A && html`<p class="recorded">A recorded look. Typing, switching off and hiding need the model: <code>saccade view ${model}</code></p>`}
    </header>
  `;
}
