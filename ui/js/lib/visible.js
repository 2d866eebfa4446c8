// Characters that change how others are shown, made visible: in a file name or a subject they serve to deceive only.

/** Overrides, embeddings and isolates of the writing direction, and the control characters of old. */
const TRICKS = /[\u0000-\u001f\u007f-\u009f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/gu;

/**
 * A text for one line, in which nothing is hidden: `invoice[U+202E]fdp.exe`.
 * @param {string} text
 */
export function visible(text) {
  return text.replace(TRICKS, (trick) => (/\s/u.test(trick) ? ' ' : `[U+${trick.charCodeAt(0).toString(16).toUpperCase().padStart(4, '0')}]`));
}
