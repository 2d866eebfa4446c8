// The messages that were looked at last, so that going back to one takes no time.

/** @import { Message } from '../../types.js' */

const MOST = 20;

/** A message with more text than this is not worth its place. */
const LONGEST = 500_000;

export class MessageMemory {
  /** The one that was looked at last stands last. @type {Map<string, Message>} */
  #kept = new Map();

  /**
   * @param {string} mailbox
   * @param {string} id
   */
  recall(mailbox, id) {
    const message = this.#kept.get(key(mailbox, id));
    if (message) this.keep(message);
    return message;
  }

  /** @param {Message} message */
  keep(message) {
    if (message.text.length > LONGEST) return;
    const name = key(message.mailbox, message.id);
    this.#kept.delete(name);
    this.#kept.set(name, message);
    const [oldest] = this.#kept.keys();
    if (this.#kept.size > MOST) this.#kept.delete(oldest);
  }

  /**
   * @param {string} mailbox
   * @param {string} id
   */
  forget(mailbox, id) {
    this.#kept.delete(key(mailbox, id));
  }
}

/**
 * @param {string} mailbox
 * @param {string} id
 */
const key = (mailbox, id) => JSON.stringify([mailbox, id]);
