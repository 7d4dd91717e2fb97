// What comes from the server or stands in the file: safetensors with a record in its header, and frames of a stream.

const SIZES = { F16: 2, F32: 4, U8: 1, U16: 2, I64: 8 };
const ARRAYS = { F16: Uint16Array, F32: Float32Array, U8: Uint8Array, U16: Uint16Array, I64: BigInt64Array };
const LARGEST_HEADER = 64 * 2 ** 20;
export const NEWEST_FORMAT = 1;

// Offsets, shapes and sizes are checked before an array is made.
export function readTensors(bytes) {
  if (bytes.byteLength < 8) throw new Error("this is no file of looks: it is too short");
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const length = Number(view.getBigUint64(0, true));
  if (length > LARGEST_HEADER || length > bytes.byteLength - 8) throw new Error("the file of looks is cut off");
  let header;
  try {
    header = JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(bytes.subarray(8, 8 + length)));
  } catch {
    throw new Error("the header of the file of looks cannot be read");
  }
  const start = 8 + length;
  const room = bytes.byteLength - start;
  const arrays = new Map();
  for (const [name, entry] of Object.entries(header)) {
    if (name === "__metadata__") continue;
    arrays.set(name, readTensor(bytes, start, room, name, entry));
  }
  return { record: readRecord(header), arrays };
}

function readTensor(bytes, start, room, name, entry) {
  const size = SIZES[entry?.dtype];
  const shape = entry?.shape;
  const [from, to] = entry?.data_offsets ?? [];
  const whole = (n) => Number.isSafeInteger(n) && n >= 0;
  if (!size || !Array.isArray(shape) || !shape.every(whole) || !whole(from) || !whole(to)) {
    throw new Error(`the array ${name} is not described as arrays are`);
  }
  const count = shape.reduce((a, b) => a * b, 1);
  if (to > room || from > to || count * size !== to - from) {
    throw new Error(`the array ${name} says ${count} numbers, but its place has ${to - from} bytes`);
  }
  const kind = ARRAYS[entry.dtype];
  const at = bytes.byteOffset + start + from;
  const data =
    at % size === 0
      ? new kind(bytes.buffer, at, count)
      : new kind(bytes.slice(start + from, start + to).buffer, 0, count);
  return { shape, data };
}

function readRecord(header) {
  const record = JSON.parse(header.__metadata__?.record ?? "null");
  if (record === null || typeof record !== "object") throw new Error("this file says nothing about looks");
  if (!Number.isInteger(record.format) || record.format > NEWEST_FORMAT) {
    throw new Error(
      `these looks have format ${record.format}; this page reads formats up to ${NEWEST_FORMAT}: use a newer Saccade`,
    );
  }
  return record;
}

// The frames of a response as they arrive: {json} or {tensors}.
export async function* readFrames(body) {
  const reader = body.getReader();
  let held = new Uint8Array(0);
  while (true) {
    while (held.length >= 5) {
      const length = new DataView(held.buffer, held.byteOffset).getUint32(1, true);
      if (held.length < 5 + length) break;
      const payload = held.slice(5, 5 + length);
      if (held[0] === 74) yield { json: JSON.parse(new TextDecoder().decode(payload)) };
      else if (held[0] === 83) yield { tensors: readTensors(payload) };
      else throw new Error("the server sent something this page does not know");
      held = held.subarray(5 + length);
    }
    const { done, value } = await reader.read();
    if (done) break;
    held = held.length ? joinBytes(held, value) : value;
  }
  if (held.length) throw new Error("the server stopped in the middle of an answer");
}

function joinBytes(one, other) {
  const both = new Uint8Array(one.length + other.length);
  both.set(one);
  both.set(other, one.length);
  return both;
}

export function bytesOfBase64(text) {
  const raw = atob(text.trim());
  const bytes = new Uint8Array(raw.length);
  for (let i = 0; i < raw.length; i++) bytes[i] = raw.charCodeAt(i);
  return bytes;
}

export function base64OfBytes(bytes) {
  let text = "";
  for (let i = 0; i < bytes.length; i += 32768) text += String.fromCharCode(...bytes.subarray(i, i + 32768));
  return btoa(text);
}
