// Finding by words as somebody types: every word must occur, in any order; neither case nor accents matter.

const PLAIN = /^[\0-\x7f]*$/u;
const MARKS = /\p{M}/gu;

/**
 * A text in the form in which texts are compared.
 * @param {string} text
 */
export function fold(text) {
  // Most mail is plain ASCII, which has nothing to take apart.
  return (PLAIN.test(text) ? text : text.normalize('NFD').replace(MARKS, '')).toLowerCase();
}

/**
 * Tests folded texts against what was typed; null when nothing was, and everything fits.
 * @param {string} typed
 * @returns {((folded: string) => boolean) | null}
 */
export function matcher(typed) {
  const words = fold(typed).split(/\s+/u).filter(Boolean);
  return words.length > 0 ? (folded) => words.every((word) => folded.includes(word)) : null;
}
