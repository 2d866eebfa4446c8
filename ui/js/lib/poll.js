// Repeats a request while something is expected to change: only while the page is visible, and by default not forever.

/** The interval in milliseconds. */
const INTERVAL_MS = 2_000;
/** The maximum number of repetitions: ten minutes. */
const MAX_REPETITIONS = 300;

/** Runs a function again and again until it returns false. */
export class Poll {
  #run;
  #interval;
  #repetitions;
  #remaining = 0;
  /** @type {number | undefined} */
  #timer;
  #stopped = new AbortController();

  /**
   * @param {() => Promise<boolean>} run Returns whether it should run again. It handles its errors.
   * @param {{ interval?: number, repetitions?: number }} [options]
   */
  constructor(run, { interval = INTERVAL_MS, repetitions = MAX_REPETITIONS } = {}) {
    this.#run = run;
    this.#interval = interval;
    this.#repetitions = repetitions;
  }

  /** Runs after the interval, and then repeatedly. The number of repetitions starts again. */
  start() {
    this.stop();
    this.#stopped = new AbortController();
    this.#remaining = this.#repetitions;
    document.addEventListener('visibilitychange', () => this.#schedule(0), { signal: this.#stopped.signal });
    this.#schedule();
  }

  /** Runs now, and then repeatedly. */
  async startNow() {
    this.stop();
    const { signal } = this.#stopped = new AbortController();
    if (await this.#run() && !signal.aborted) this.start();
  }

  stop() {
    this.#stopped.abort();
    clearTimeout(this.#timer);
  }

  #schedule(delay = this.#interval) {
    clearTimeout(this.#timer);
    if (!document.hidden && this.#remaining > 0) this.#timer = window.setTimeout(() => this.#repeat(), delay);
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
