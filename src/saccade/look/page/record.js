// A run as the page holds it: axes, looks, steps, and the weights as far as they are here.

const MOST_HELD = 64 * 2 ** 20;

export class RunRecord {
  constructor(record, arrays, prefix = "") {
    this.record = record;
    this.run = record.run;
    this.axes = record.axes;
    this.looks = record.looks;
    this.steps = record.steps ?? [];
    this.arrays = arrays;
    this.prefix = prefix;
    this.fetched = new Map();
    this.held = 0;
    this.checked();
  }

  checked() {
    for (const [number, look] of this.looks.entries()) {
      const rows = this.axes[look.rows];
      const columns = this.axes[look.columns];
      if (!rows || !columns) throw new Error(`look ${number} names an axis that is not there`);
      const all = this.array(`w${number}`);
      const size = [look.heads + 1, axisLength(rows), axisLength(columns)];
      if (all && all.shape.join() !== size.join()) {
        throw new Error(`look ${number} has weights of ${all.shape.join(" × ")}, not ${size.join(" × ")}`);
      }
    }
  }

  array(name) {
    return this.arrays.get(this.prefix + name);
  }

  rows(look) {
    return this.axes[this.looks[look].rows];
  }

  columns(look) {
    return this.axes[this.looks[look].columns];
  }

  // A head's weights, or after the last head their mean: {bits, rows, columns, partial}; null while they are not here.
  plane(look, number) {
    const rows = axisLength(this.rows(look));
    const columns = axisLength(this.columns(look));
    const all = this.array(`w${look}`);
    const size = rows * columns;
    if (all) return { bits: all.data.subarray(number * size, (number + 1) * size), rows, columns };
    const key = `${look} ${number}`;
    const known = this.fetched.get(key);
    if (known) {
      this.fetched.delete(key); // the one that was used last goes last
      this.fetched.set(key, known);
      return known;
    }
    const places = this.array(`i${look}`);
    if (!places) return null;
    const values = this.array(`v${look}`);
    const each = places.shape[2];
    const bits = new Uint16Array(size);
    for (let row = 0; row < rows; row++) {
      const at = (number * rows + row) * each;
      for (let i = 0; i < each; i++) bits[row * columns + places.data[at + i]] = values.data[at + i];
    }
    return this.keep(look, number, { bits, rows, columns, partial: true });
  }

  keep(look, number, plane) {
    this.fetched.set(`${look} ${number}`, plane);
    this.held += plane.bits.byteLength;
    for (const [key, one] of this.fetched) {
      if (this.held <= MOST_HELD || one === plane) break;
      this.fetched.delete(key);
      this.held -= one.bits.byteLength;
    }
    return plane;
  }

  thumb(look, number) {
    const all = this.array(`t${look}`);
    if (!all) return null;
    const [, rows, columns] = all.shape;
    return { shades: all.data.subarray(number * rows * columns, (number + 1) * rows * columns), rows, columns };
  }

  entropy(look, number) {
    return this.array(`e${look}`)?.data[number] ?? null;
  }

  role(look, number) {
    return this.looks[look].roles?.[number] ?? "";
  }

  // The looks of one kind at one memory, in one part of the input: [number of look …], first layer first.
  group(kind, memory, part) {
    return this.looks.flatMap((one, number) =>
      one.kind === kind && one.memory === memory && one.part === part && one.site !== "rollout" ? [number] : [],
    );
  }

  rollout(memory, part) {
    const found = this.looks.findIndex((one) => one.site === "rollout" && one.memory === memory && one.part === part);
    return found < 0 ? null : found;
  }

  // What looks at what: [{kind, memory}], what is most often wanted first.
  groups(part) {
    const order = ["cross", "decoder", "encoder"];
    const found = new Map();
    for (const one of this.looks) {
      if (one.part === part && one.site !== "rollout") found.set(`${one.kind} ${one.memory}`, one);
    }
    return [...found.values()].sort((a, b) => order.indexOf(a.kind) - order.indexOf(b.kind));
  }

  get parts() {
    return 1 + Math.max(0, ...this.looks.map((one) => one.part));
  }

  // The step that wrote a row, if one did.
  stepOfRow(look, row) {
    const one = this.looks[look];
    if (!one || one.kind === "encoder") return null;
    const steps = this.steps[one.part] ?? [];
    const written = this.record.written?.[one.part] ?? 0;
    const place = row - (axisLength(this.rows(look)) - 1 - written);
    const found = steps.findIndex((step) => step.place === place);
    return found < 0 ? null : found;
  }

  rowOfStep(look, step) {
    const one = this.looks[look];
    const place = this.steps[one.part]?.[step]?.place;
    if (place === undefined || one.kind === "encoder") return null;
    return place + axisLength(this.rows(look)) - 1 - (this.record.written?.[one.part] ?? 0);
  }
}

export function axisLength(axis) {
  if (axis.pieces) return axis.pieces.length;
  return axis.kind === "grid" ? axis.shape[0] * axis.shape[1] : axis.count;
}

// A position as it is read out and written at edges.
export function labelOf(axis, place) {
  if (axis.pieces) return shownText(axis.pieces[place]?.text ?? "");
  if (axis.kind === "grid") return `row ${1 + Math.floor(place / axis.shape[1])}, column ${1 + (place % axis.shape[1])}`;
  return `${(place * axis.seconds).toFixed(2)} s`;
}

// The same where there is little room.
export function edgeLabel(axis, place) {
  if (axis.kind !== "grid") return labelOf(axis, place);
  return `${1 + Math.floor(place / axis.shape[1])},${1 + (place % axis.shape[1])}`;
}

// A model by name; of a folder its last part.
export function modelName(name) {
  return name.split("/").filter(Boolean).at(-1) ?? name;
}

// Spaces at the beginning go, what has no shape gets one.
export function shownText(text) {
  if (text === "") return "…";
  const kept = text.replace(/^ /, "");
  if (kept === "") return "␣";
  return kept.replace(/\n/g, "↵").replace(/\t/g, "⇥").replace(/[\u0000-\u001f\u007f-\u009f]/g, "\ufffd");
}

export function clipped(text, most = 32) {
  const letters = [...text.slice(0, 4 * most + 8)];
  return letters.length > most ? letters.slice(0, most).join("") + "…" : text;
}

export function groupName(one) {
  if (one.kind === "cross") return one.memory === "source" ? "Output looks at input" : `Output looks at ${one.memory}`;
  if (one.kind === "decoder") return "Output looks at its past";
  return one.memory === "source" ? "Input looks at itself" : `${one.memory} looks at itself`;
}

// Who looks at what, in two words.
export function shortName(one) {
  const memory = one.memory === "source" ? "input" : one.memory;
  if (one.kind === "encoder") return `${memory} → ${memory}`;
  return one.kind === "decoder" ? "output → past" : `output → ${memory}`;
}
