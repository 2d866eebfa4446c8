// Limits how often an action runs while the user moves quickly through a list.

/** Calls that follow one another faster than this are delayed, in milliseconds. */
const QUICK_MS = 150;

export class Debounce {
  #lastCall = -QUICK_MS;
  /** @type {number | undefined} */
  #timer;

  /**
   * Runs an action: at once, or, if the previous call was a moment ago, after a pause. Cancels a delayed action.
   * @param {() => void} action
   */
  run(action) {
    this.cancel();
    const isQuick = performance.now() - this.#lastCall < QUICK_MS;
    this.#lastCall = performance.now();
    if (!isQuick) return action();
    this.#timer = window.setTimeout(() => {
      this.#timer = undefined;
      action();
    }, QUICK_MS);
  }

  /** Cancels the delayed action. Returns whether there was one. */
  cancel() {
    const wasPending = this.#timer !== undefined;
    clearTimeout(this.#timer);
    this.#timer = undefined;
    return wasPending;
  }
}
