// Keyboard shortcuts: single keys, and two after one another (`g m`). They rest while somebody types, and while a
// modifier is held, which belongs to the browser.

/**
 * @typedef {object} Shortcut
 * @property {string[]} keys As `KeyboardEvent.key` names them; `g m` for two after one another.
 * @property {string} label What it does, for the help.
 * @property {string} group Where it works, for the help.
 * @property {(event: KeyboardEvent) => void} run
 * @property {boolean} [once] Whether holding the key does it only once, as with everything that switches to and fro.
 * @property {(event: KeyboardEvent) => boolean} [when] Where or when it does not work, the key keeps its own meaning.
 */

/** How long the second key may take. */
const PATIENCE = 1500;

/** @type {Set<Shortcut>} */
const shortcuts = new Set();
let pending = '';
/** @type {number | undefined} */
let timer;

/**
 * Adds shortcuts until the signal ends them.
 * @param {Shortcut[]} added
 * @param {AbortSignal} [signal]
 */
export function add(added, signal) {
  for (const shortcut of added) shortcuts.add(shortcut);
  signal?.addEventListener('abort', () => added.forEach((shortcut) => shortcuts.delete(shortcut)));
}

/** The shortcuts that work now, by group, in the order in which they were added; without keys that another one has taken. */
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
 * Whether keys go into this element as text, or mean something to it.
 * @param {EventTarget | null} target
 */
function isTyping(target) {
  return target instanceof HTMLElement && (target.isContentEditable || target.matches('input:not([type=checkbox], [type=radio], [type=button]), textarea, select'));
}

document.addEventListener('keydown', (event) => {
  const { key, target } = event;
  const elsewhere = event.ctrlKey || event.altKey || event.metaKey || event.isComposing || event.defaultPrevented;
  if (elsewhere || isTyping(target) || document.querySelector('dialog[open]')) return;
  // What Enter and the blank do to a link or a button is known to everybody.
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
    timer = window.setTimeout(() => (pending = ''), PATIENCE);
  }
});

/**
 * The last one added wins: pages come after the frame around them.
 * @param {string} keys
 * @param {KeyboardEvent} event
 */
function matching(keys, event) {
  return [...shortcuts].findLast((shortcut) => shortcut.keys.includes(keys) && (shortcut.when?.(event) ?? true));
}
