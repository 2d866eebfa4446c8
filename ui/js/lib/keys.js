// Keyboard shortcuts: single keys, and sequences of two keys (`g m`). They do not work while the user types in a field, nor with
// Ctrl, Alt or Meta, which belong to the browser.

/**
 * @typedef {object} Shortcut
 * @property {string[]} keys Names as in `KeyboardEvent.key`; `g m` for a sequence.
 * @property {string} label What it does, shown in the help.
 * @property {string} group Where it works, shown in the help.
 * @property {(event: KeyboardEvent) => void} run
 * @property {boolean} [once] True if key repeat is ignored, as for toggles.
 * @property {(event: KeyboardEvent) => boolean} [when] If it returns false, the shortcut does nothing and the key has its default effect.
 */

/** The maximum time between the two keys of a sequence. */
const SEQUENCE_TIMEOUT_MS = 1500;

/** @type {Set<Shortcut>} */
const shortcuts = new Set();
let pending = '';
/** @type {number | undefined} */
let timer;

/**
 * Adds shortcuts until the signal is aborted.
 * @param {Shortcut[]} added
 * @param {AbortSignal} [signal]
 */
export function add(added, signal) {
  for (const shortcut of added) shortcuts.add(shortcut);
  signal?.addEventListener('abort', () => added.forEach((shortcut) => shortcuts.delete(shortcut)));
}

/** Returns the active shortcuts by group, in the order in which they were added, without keys that a later shortcut overrides. */
export function byGroup() {
  /** @type {Map<string, Shortcut[]>} */
  const groups = new Map();
  const all = [...shortcuts];
  for (const shortcut of all) {
    const keys = shortcut.keys.filter((key) => all.findLast((other) => other.keys.includes(key)) === shortcut);
    if (keys.length > 0) groups.set(shortcut.group, [...(groups.get(shortcut.group) ?? []), { ...shortcut, keys }]);
  }
  return groups;
}

/**
 * Returns whether the element uses keys itself, for example as text.
 * @param {EventTarget | null} target
 */
function isTyping(target) {
  return target instanceof HTMLElement && (target.isContentEditable || target.matches('input:not([type=checkbox], [type=radio], [type=button]), textarea, select'));
}

document.addEventListener('keydown', (event) => {
  const { key, target } = event;
  const isIgnored = event.ctrlKey || event.altKey || event.metaKey || event.isComposing || event.defaultPrevented;
  if (isIgnored || isTyping(target) || document.querySelector('dialog[open]')) return;
  // Enter and Space activate links and buttons.
  if ((key === 'Enter' || key === ' ') && target instanceof HTMLElement && target.closest('a, button, summary, [role=tab]')) return;

  const sequence = pending ? `${pending} ${key}` : key;
  const found = matching(sequence, event) ?? matching(key, event);
  pending = '';
  clearTimeout(timer);
  if (found) {
    event.preventDefault();
    if (!(found.once && event.repeat)) found.run(event);
  } else if ([...shortcuts].some((shortcut) => shortcut.keys.some((keys) => keys.startsWith(`${key} `)))) {
    pending = key;
    timer = window.setTimeout(() => (pending = ''), SEQUENCE_TIMEOUT_MS);
  }
});

/**
 * Finds a shortcut. The last one added wins: pages override the frame.
 * @param {string} keys
 * @param {KeyboardEvent} event
 */
function matching(keys, event) {
  return [...shortcuts].findLast((shortcut) => shortcut.keys.includes(keys) && (shortcut.when?.(event) ?? true));
}
