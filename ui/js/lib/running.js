// Whoever runs through a list wants to see where they stop, not all on the way.

/** How fast steps follow one another when somebody runs. */
const RUNNING = 150;

export class Running {
  #steppedAt = -RUNNING;
  /** @type {number | undefined} */
  #timer;

  /**
   * Takes a step, at once or, for somebody who runs, when they stop.
   * @param {() => void} act
   */
  step(act) {
    this.stop();
    const isRunning = performance.now() - this.#steppedAt < RUNNING;
    this.#steppedAt = performance.now();
    if (!isRunning) return act();
    this.#timer = window.setTimeout(() => {
      this.#timer = undefined;
      act();
    }, RUNNING);
  }

  /** The last step is not taken any more. Returns whether one was still to be taken. */
  stop() {
    const wasRunning = this.#timer !== undefined;
    clearTimeout(this.#timer);
    this.#timer = undefined;
    return wasRunning;
  }
}
