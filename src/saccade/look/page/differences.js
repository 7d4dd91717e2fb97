// Words that two texts share, in order: the longest common subsequence, with words that were taken away and added.

const MOST_WORDS = 1500;

export function differences(before, after) {
  const one = before.match(/\s*\S+|\s+$/g) ?? [];
  const other = after.match(/\s*\S+|\s+$/g) ?? [];
  if (one.length > MOST_WORDS || other.length > MOST_WORDS) return [["-", before], ["+", after]];
  const width = other.length + 1;
  const lengths = new Uint16Array((one.length + 1) * width);
  for (let i = one.length - 1; i >= 0; i--) {
    for (let j = other.length - 1; j >= 0; j--) {
      lengths[i * width + j] =
        one[i].trim() === other[j].trim()
          ? lengths[(i + 1) * width + j + 1] + 1
          : Math.max(lengths[(i + 1) * width + j], lengths[i * width + j + 1]);
    }
  }
  const found = [];
  const add = (kind, part) => {
    if (found.at(-1)?.[0] === kind) found.at(-1)[1] += part;
    else found.push([kind, part]);
  };
  let i = 0;
  let j = 0;
  while (i < one.length || j < other.length) {
    if (i < one.length && j < other.length && one[i].trim() === other[j].trim()) {
      add("=", other[j]);
      i++;
      j++;
    } else if (i < one.length && (j === other.length || lengths[(i + 1) * width + j] >= lengths[i * width + j + 1])) {
      add("-", one[i++]);
    } else add("+", other[j++]);
  }
  return found;
}
