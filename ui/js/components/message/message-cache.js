// A cache of the messages that were shown last.

/** @import { ShownMessage } from '../../types.js' */

const MAX_MESSAGES = 20;

/** A message with a longer text is not cached. */
const MAX_TEXT_LENGTH = 500_000;

export class MessageCache {
  /** The most recently used message is last. @type {Map<string, ShownMessage>} */
  #messages = new Map();

  /** @param {string} id */
  get(id) {
    const message = this.#messages.get(id);
    if (message) this.put(message);
    return message;
  }

  /** @param {ShownMessage} message */
  put(message) {
    if (message.text.length > MAX_TEXT_LENGTH) return;
    this.#messages.delete(message.id);
    this.#messages.set(message.id, message);
    const [oldest] = this.#messages.keys();
    if (this.#messages.size > MAX_MESSAGES) this.#messages.delete(oldest);
  }

  /** @param {string} id */
  delete(id) {
    this.#messages.delete(id);
  }
}
