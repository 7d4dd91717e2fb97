// How the text was written: at each step the likeliest pieces and the beam's other beginnings. A click goes on from one.
import { html } from "./view.js";
import { goOn, pinAt } from "./doing.js";
import { percent } from "./numbers.js";
import { shownText } from "./record.js";
import { chosenOf, set, state } from "./state.js";

export function Step({ run, letter }) {
  const steps = run.steps[state.part] ?? [];
  if (!steps.length) {
    return html`<div class="pane"><p class="faint">${run.run.others.length ? "This model says all at once: its next best answers stand below the output." : "Nothing was written piece by piece here."}</p></div>`;
  }
  const number = Math.min(state.step, steps.length - 1);
  const step = steps[number];
  const go = (to) => {
    const next = Math.min(steps.length - 1, Math.max(0, to));
    const { look } = chosenOf(letter);
    const row = look >= 0 ? run.rowOfStep(look, next) : null;
    set({ step: next });
    if (row !== null) pinAt(row, null, "row", letter);
  };
  const finished = (run.record.finished?.[state.part] ?? []).slice(0, 6);
  return html`<div class="pane">
    <div class="stepper">
      <button aria-label="Previous step" disabled=${number === 0} onClick=${() => go(number - 1)}>‹</button>
      <input type="range" aria-label="Step" min="0" max=${steps.length - 1} value=${number} onInput=${(event) => go(Number(event.target.value))} />
      <button aria-label="Next step" disabled=${number === steps.length - 1} onClick=${() => go(number + 1)}>›</button>
      <span class="count">${number + 1} of ${steps.length}</span>
    </div>
    <h3>Next piece: probability</h3>
    <ol class="bars">
      ${step.likely.map((one) => html`<li class=${one.chosen ? "chosen" : ""}>
        <button disabled=${!state.live || one.ends || !one.prefix} title=${state.live ? (one.ends ? "Here the text ends" : "Go on from here") : "needs the model: saccade view"} onClick=${() => goOn(one.prefix)}>
          <span class="what"><bdi>${shownText(one.text)}</bdi></span>
          <span class="bar" aria-hidden="true"><i style=${{ width: `${100 * Math.exp(one.logp)}%` }}></i></span>
          <span class="value">${percent(Math.exp(one.logp))}</span>
        </button></li>`)}
      <li class="rest"><span class="what faint">all others</span><span class="bar" aria-hidden="true"><i style=${{ width: `${100 * step.rest}%` }}></i></span><span class="value">${percent(step.rest)}</span></li>
    </ol>
    <p class="faint hint">${state.live ? "Click one: the model goes on from there." : ""}</p>
    ${step.beginnings.length > 1 && html`<h3>The beam: beginnings, log-probability</h3>
      <ul class="beam">${step.beginnings.map((one) => html`<li class=${one.chosen ? "chosen" : one.kept ? "" : "dropped"}>
        <bdi>${one.text || "(begin)"}</bdi> <span class="value">${one.logprob.toFixed(2)}</span>${one.kept ? "" : html`<small> dropped at step ${number + 1}</small>`}</li>`)}</ul>`}
    ${finished.length > 1 && html`<h3>Finished texts: score</h3>
      <ul class="beam">${finished.map((one) => html`<li class=${one.chosen ? "chosen" : ""}><bdi>${one.text}</bdi> <span class="value">${one.score.toFixed(2)}</span></li>`)}</ul>`}
  </div>`;
}
