// Splits a list of addresses of a header field (RFC 5322, section 3.4) as far as it is shown. Any input is accepted, in linear time.

/**
 * Returns the addresses, each as `Name <address>` or as an address alone. Comments and the names of groups are omitted. A text
 * without an address is returned as it is.
 * @param {string} field The field, with encoded words decoded.
 * @returns {string[]}
 */
export function addresses(field) {
  const text = field.replace(/\s+/gu, ' ').trim();
  const list = new AddressList();
  let depth = 0;
  for (let at = 0; at < text.length; at += 1) {
    const char = text[at];
    if (depth > 0) {
      if (char === '\\') at += 1;
      else depth += char === '(' ? 1 : char === ')' ? -1 : 0;
    } else if (char === '"') at = list.addQuoted(text, at);
    else if (char === '(') depth = 1;
    else list.add(char);
  }
  const found = list.end();
  return found.some((one) => one.includes('@')) || text === '' ? found : [text];
}

/** Collects addresses. */
class AddressList {
  /** @type {string[]} */
  #done = [];
  #current = '';
  /** Whether the current address contains more than spaces, and `@`. */
  #hasWords = false;
  #hasAt = false;
  #isInBrackets = false;

  /** @param {string} char A character outside of quotes and comments. */
  add(char) {
    if (!this.#isInBrackets && (char === ',' || char === ';')) return this.#finish(char);
    // The name of a group. A colon after `@` is that of an IP address.
    if (!this.#isInBrackets && char === ':' && !this.#hasAt) return this.#restart();
    if (char === '<') this.#isInBrackets = true;
    if (char === '>') this.#isInBrackets = false;
    if (char === '@') this.#hasAt = true;
    if (char !== ' ') this.#hasWords = true;
    this.#current += char;
  }

  /**
   * Adds a quoted text. Its quotes are part of an address, but not of a name. Returns the index of its end.
   * @param {string} text
   * @param {number} start
   */
  addQuoted(text, start) {
    let [words, at] = ['', start + 1];
    for (; at < text.length && text[at] !== '"'; at += 1) {
      if (text[at] === '\\') at += 1;
      words += text[at] ?? '';
    }
    this.#current += text[at + 1] === '@' ? text.slice(start, at + 1) : words;
    this.#hasWords = true;
    return at;
  }

  /** Returns all addresses. */
  end() {
    this.#finish('');
    return this.#done;
  }

  /** @param {string} separator */
  #finish(separator) {
    // The comma of a name without quotes, such as that of a decoded word.
    if (separator === ',' && this.#hasWords && !this.#hasAt) {
      this.#current += separator;
      return;
    }
    if (this.#hasWords) this.#done.push(this.#current.trim());
    this.#restart();
  }

  #restart() {
    this.#current = '';
    this.#hasWords = this.#hasAt = this.#isInBrackets = false;
  }
}
