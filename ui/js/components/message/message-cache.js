// A cache of the messages that were shown last.

/** @import { Message } from '../../types.js' */

const MAX_MESSAGES = 20;

/** A message with a longer text is not cached. */
const MAX_TEXT_LENGTH = 500_000;

export class MessageCache {
  /** The most recently used message is last. @type {Map<string, Message>} */
  #messages = new Map();

  /**
   * @param {string} mailbox
   * @param {string} id
   */
  get(mailbox, id) {
    const message = this.#messages.get(key(mailbox, id));
    if (message) this.put(message);
    return message;
  }

  /** @param {Message} message */
  put(message) {
    if (message.text.length > MAX_TEXT_LENGTH) return;
    const name = key(message.mailbox, message.id);
    this.#messages.delete(name);
    this.#messages.set(name, message);
    const [oldest] = this.#messages.keys();
    if (this.#messages.size > MAX_MESSAGES) this.#messages.delete(oldest);
  }

  /**
   * @param {string} mailbox
   * @param {string} id
   */
  delete(mailbox, id) {
    this.#messages.delete(key(mailbox, id));
  }
}

/**
 * @param {string} mailbox
 * @param {string} id
 */
const key = (mailbox, id) => JSON.stringify([mailbox, id]);
