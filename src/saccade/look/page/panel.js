// Beside the looks: the step that wrote a word, what each head is worth, one number's arithmetic, the model's parts.
import { html } from "./view.js";
import { Effect } from "./effect.js";
import { Explain } from "./explain.js";
import { Inspect } from "./inspect.js";
import { Parts } from "./parts.js";
import { Step } from "./step.js";
import { set, state } from "./state.js";

const PANELS = { step: ["Step", Step], effect: ["Which head?", Effect], why: ["Explain", Explain], inspect: ["Numbers", Inspect], parts: ["Model", Parts] };

export function Panel({ run, letter }) {
  const [, Shown] = PANELS[state.panel] ?? PANELS.step;
  return html`<aside class="panel" aria-label="Details">
    <div class="tabs" role="group" aria-label="Details">
      ${Object.entries(PANELS).map(([key, [name]]) => html`<button aria-pressed=${state.panel === key} onClick=${() => set({ panel: key })}>${name}</button>`)}
    </div>
    <${Shown} run=${run} letter=${letter} />
  </aside>`;
}
