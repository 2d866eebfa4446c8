// Whether the server is there, as far as the pages that listen to it can tell. Shown in the bar while it is not.

/** @typedef {{ up(): void, down(): void }} Line A line that is no longer of interest counts as up. */

/** @type {Set<Line>} */
const down = new Set();

/** Tells of changes: an event `change`. */
export const changes = new EventTarget();

export const isLost = () => down.size > 0;

/**
 * A new line to the server, which counts as good until it is known to be down.
 * @returns {Line}
 */
export function line() {
  const told = (/** @type {() => void} */ change) => {
    const before = isLost();
    change();
    if (before !== isLost()) changes.dispatchEvent(new Event('change'));
  };
  /** @type {Line} */
  const self = {
    up: () => told(() => down.delete(self)),
    down: () => told(() => down.add(self)),
  };
  return self;
}
