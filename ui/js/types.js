// The shapes of what the server says, for the type checker and for readers; there is nothing here to run.

/**
 * A message in a listing, as the REST API tells it.
 * @typedef {object} Summary
 * @property {string} mailbox
 * @property {string} id
 * @property {string} from
 * @property {string[]} to
 * @property {string} subject
 * @property {string} date
 * @property {number} posix-millis
 * @property {number} size
 * @property {boolean} seen
 */

/**
 * @typedef {object} MessageParts
 * @property {string} text
 * @property {boolean} html Whether there is HTML to preview.
 * @property {string[]} remote The hosts that the HTML would load something from.
 * @property {Header[]} headers
 * @property {Attachment[]} attachments
 * @property {Part[]} parts
 * @property {Defect[]} defects
 * @property {Code | null} [code] The likeliest one-time code, if one was found; asked for apart.
 * @typedef {Summary & MessageParts} Message
 */

/** @typedef {{ name: string, value: string, decoded?: string }} Header */

/**
 * @typedef {object} Attachment
 * @property {number} index
 * @property {string} filename
 * @property {string} content-type
 * @property {number} size
 * @property {string} md5
 * @property {string | null} content-id
 */

/**
 * @typedef {object} Part
 * @property {number} depth
 * @property {string} content-type
 * @property {string | null} charset
 * @property {string} encoding
 * @property {'inline' | 'attachment' | null} disposition
 * @property {string | null} filename
 * @property {string | null} content-id
 * @property {number} size
 * @property {'multipart' | 'text' | 'html' | 'attachment'} role
 * @property {number | null} attachment
 */

/** @typedef {{ name: string, detail: string, severe: boolean }} Defect */

/**
 * What may be a one-time code, and the words around it.
 * @typedef {object} Code
 * @property {string} code
 * @property {number} score From 0 to 1.
 * @property {string} before
 * @property {string} after
 * @property {'subject' | 'text' | 'html'} where
 */

/**
 * @typedef {object} Link
 * @property {string} href
 * @property {string} text
 * @property {string | null} image-alt
 * @property {'html' | 'text' | 'header'} where
 * @property {'http' | 'mailto' | 'other'} kind
 */

/**
 * A message that was looked for, and some of its text around what was found.
 * @typedef {Summary & { snippet: { text: string, hit: boolean }[] }} Hit
 * @typedef {object} Found
 * @property {Hit[]} messages The newest first.
 * @property {string | null} next Where to go on.
 * @property {boolean} complete Whether the index knows all that was stored before the question.
 */

/**
 * A session of SMTP or LMTP.
 * @typedef {object} Session
 * @property {string} id
 * @property {'smtp' | 'lmtp'} protocol
 * @property {string | null} client Its address.
 * @property {string | null} helo
 * @property {{ version: string, cipher: string } | null} tls
 * @property {string | null} user
 * @property {string} started
 * @property {number} started-millis
 * @property {number | null} ended-millis
 * @property {string | null} ending
 * @property {Transaction[]} transactions
 * @property {number} refused How many replies were refusals.
 */

/**
 * One mail of a session.
 * @typedef {object} Transaction
 * @property {string} from
 * @property {string[]} to
 * @property {{ mail: string, rcpt: string[] }} parameters
 * @property {'stored' | 'discarded' | 'refused' | 'aborted'} outcome
 * @property {string | null} reply
 * @property {{ mailbox: string, id: string }[]} messages
 */

/**
 * @typedef {{ 'after-millis': number, from: 'client' | 'server', text: string }} Said A line of a session.
 * @typedef {{ session: Session, lines: Said[] }} Transcript
 * @typedef {{ sessions: Session[], next: string | null }} SessionPage
 */

/**
 * A mailbox that holds something.
 * @typedef {object} Mailbox
 * @property {string} name
 * @property {number} messages
 * @property {number} unseen
 * @property {number} bytes
 * @property {{ id: string, date: string, 'posix-millis': number }} newest
 */

/** @typedef {{ mailboxes: Mailbox[], next: string | null }} MailboxPage */

/**
 * @typedef {object} Server
 * @property {string} version
 * @property {string} build-date
 * @property {number} started-millis
 * @property {'local' | 'full' | 'domain'} mailbox-naming
 * @property {boolean} monitor-visible
 * @property {{ port: number | null, domain: string, tls: Tls, 'auth-required': boolean, 'max-message-bytes': number, 'max-recipients': number }} smtp
 * @property {{ port: number | null, tls: Tls }} pop3
 * @property {string | null} script The name of its file.
 * @property {number} webhooks How many there are.
 * @property {string | null} user Who is logged in, where one has to be.
 * @property {boolean} locked Whether one has to be.
 */

/** @typedef {'off' | 'starttls' | 'implicit'} Tls */

/**
 * The configuration as `/serve/status` tells it.
 * @typedef {object} Status
 * @property {string} version
 * @property {string} build-date
 * @property {string} pop3-listener
 * @property {string} web-listener
 * @property {{ addr: string, 'default-accept': boolean, 'accept-domains': string[], 'reject-domains': string[], 'default-store': boolean, 'store-domains': string[], 'discard-domains': string[], 'reject-origin-domains': string[] }} smtp-config
 * @property {{ 'mailbox-msg-cap': number, 'store-type': string, 'retention-period': string }} storage-config
 */

/**
 * The counters of `/debug/vars`. A `Hist` holds what the number beside it was in the last hour, minute by minute, separated
 * by commas, oldest first: 61 of them at most, none in the first minute. Counters begin at zero when the server starts.
 * @typedef {object} Vars
 * @property {{ ConnectsTotal: number, ConnectsCurrent: number, ConnectsHist: string, ReceivedTotal: number, ReceivedHist: string, ErrorsTotal: number, ErrorsHist: string, WarnsTotal: number, WarnsHist: string }} smtp
 * @property {{ WebSocketConnectsCurrent: number }} http
 * @property {{ DeletesTotal: number, DeletesHist: string, Period: number, RetainedCurrent: number, RetainedHist: string, RetainedSize: number, SizeHist: string, ScanCompletedMillis: number }} retention
 * @property {{ Sys: number, HeapSys: number, HeapAlloc: number, HeapObjects: number }} memstats The memory that the process takes, under several names.
 * @property {number} goroutines
 * @property {number} startMillis
 */

/**
 * What the address in the browser means.
 * @typedef {{ page: 'home' } | { page: 'mailbox', mailbox: string, id: string | null } | { page: 'monitor' } | { page: 'status' } | { page: 'search', query: string, mailbox: string | null } | { page: 'sessions', refused: boolean, id: string | null } | { page: 'missing' }} Route
 */

export {};
