// Repeats a request while something is expected to change: only while the page is visible, and not forever.

/** The interval in milliseconds. */
const INTERVAL_MS = 2_000;
/** The maximum number of repetitions: ten minutes. */
const MAX_REPETITIONS = 300;

/** Runs a function again and again until it returns false. */
export class Poll {
  #run;
  #remaining = 0;
  /** @type {number | undefined} */
  #timer;
  #stopped = new AbortController();

  /** @param {() => Promise<boolean>} run Returns whether it should run again. It handles its errors. */
  constructor(run) {
    this.#run = run;
  }

  /** Runs after the interval, and then repeatedly. The number of repetitions starts again. */
  start() {
    this.stop();
    this.#stopped = new AbortController();
    this.#remaining = MAX_REPETITIONS;
    document.addEventListener('visibilitychange', () => this.#schedule(), { signal: this.#stopped.signal });
    this.#schedule();
  }

  stop() {
    this.#stopped.abort();
    clearTimeout(this.#timer);
  }

  #schedule() {
    clearTimeout(this.#timer);
    if (!document.hidden && this.#remaining > 0) this.#timer = window.setTimeout(() => this.#repeat(), INTERVAL_MS);
  }

  async #repeat() {
    const { signal } = this.#stopped;
    this.#remaining -= 1;
    const isWanted = await this.#run();
    if (signal.aborted) return;
    if (isWanted) this.#schedule();
    else this.stop();
  }
}
