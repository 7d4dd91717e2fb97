// Half floats by a table, and numbers as they are written.

export const HALF = halfTable();

function halfTable() {
  const table = new Float32Array(65536);
  for (let bits = 0; bits < 65536; bits++) {
    const sign = bits & 0x8000 ? -1 : 1;
    const exponent = (bits >> 10) & 31;
    const part = bits & 1023;
    if (exponent === 0) table[bits] = sign * part * 2 ** -24;
    else if (exponent === 31) table[bits] = part ? 0 : sign * 65504;
    else table[bits] = sign * (1 + part / 1024) * 2 ** (exponent - 15);
  }
  return table;
}

export function percent(share) {
  const value = 100 * share;
  if (value >= 9.95) return `${value.toFixed(0)} %`;
  if (value >= 0.095) return `${value.toFixed(1)} %`;
  return value > 0 ? "< 0.1 %" : "0 %";
}

export function signed(number, digits = 2) {
  const text = Math.abs(number).toFixed(digits);
  if (Number(text) === 0) return (0).toFixed(digits);
  return (number < 0 ? "−" : "+") + text;
}

export function plain(number, digits = 3) {
  return (number < 0 ? "−" : "") + Math.abs(number).toFixed(digits);
}

export function milliseconds(seconds) {
  return seconds < 1 ? `${Math.round(1000 * seconds)} ms` : `${seconds.toFixed(1)} s`;
}
