// Escapes characters that change how others are displayed: in a file name or a subject they are used to deceive.

/** Bidirectional controls and ASCII control characters. */
const CONTROLS = /[\u0000-\u001f\u007f-\u009f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/gu;

/**
 * Returns a text for one line in which such characters are visible: `invoice[U+202E]fdp.exe`.
 * @param {string} text
 */
export function visible(text) {
  return text.replace(CONTROLS, (control) => (/\s/u.test(control) ? ' ' : `[U+${control.charCodeAt(0).toString(16).toUpperCase().padStart(4, '0')}]`));
}
