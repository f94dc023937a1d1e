/** What servers are asked for and what they tell, as users of a client see it. */

/** A signal as it came. */
export class Signal {
  constructor(
    readonly channel: string,
    readonly payload: Uint8Array,
  ) {}

  /** The payload as text; what is not UTF-8 is replaced. */
  get text(): string {
    return Buffer.from(this.payload).toString();
  }
}

/** The server's statistics, as it gives them. */
export interface Stats {
  connections: number;
  locks: { key: string; owner_conn_id: number; lease_expires_in_s: number; waiters: number }[];
  semaphores: { key: string; limit: number; holders: number; waiters: number }[];
  idle_locks: { key: string; idle_s: number }[];
  idle_semaphores: { key: string; idle_s: number }[];
  signal_channels?: { pattern: string; group?: string; listeners: number }[];
  [member: string]: unknown;
}

/** One of several that are wanted at once: a lock, or permits of a semaphore with this limit. */
export interface SetItem {
  key: string;
  shared?: boolean | undefined;
  limit?: number | undefined;
  permits?: number | undefined;
}
