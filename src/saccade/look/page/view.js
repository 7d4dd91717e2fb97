// Preact and htm under one name: html`<p>…</p>`. Text from data only ever becomes text nodes.
import { h } from "./vendor/preact.js";
import htm from "./vendor/htm.js";

export const html = htm.bind(h);
