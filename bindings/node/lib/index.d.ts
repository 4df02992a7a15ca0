/** Dependable advisory locks and serialised transactions on PostgreSQL, or on a local folder. */

import { EventEmitter } from "node:events";

/** The version of libholdfast that was loaded. */
export const version: string;

export type Code =
  | "HF_INVALID" | "HF_BAD_DATA" | "HF_NO_MEMORY" | "HF_UNREACHABLE" | "HF_CONFIG" | "HF_NO_SCHEMA"
  | "HF_NOT_ACQUIRED" | "HF_LOST" | "HF_ORDER" | "HF_DEADLOCK" | "HF_COLLISION" | "HF_SLOTS" | "HF_QUOTA"
  | "HF_NO_TRANSACTION" | "HF_FORKED" | "HF_INTERRUPTED" | "HF_DATABASE" | "HF_SYSTEM" | "HF_IN_DOUBT"
  | "HF_EXHAUSTED" | "HF_CURSOR" | "HF_ROLLED_BACK";

/** Every failure, but for the reason of an AbortSignal and what callbacks throw themselves. */
export class HoldfastError extends Error {
  readonly code: Code;
  /** The number of the code in C. */
  readonly status: number;
  /** "" when it is not from a server. */
  readonly sqlstate: string;
  /** What to do, or "". */
  readonly hint: string;
  /** The character of the statement that it is about, from 1; 0: none. */
  readonly position: number;
}

export type Derivation =
  | "sha256" | "fnv1a64" | "fnv1a32" | "fnv1a32-js" | "hashtext" | "hashtextextended" | "fixed" | "minted"
  | "crc32" | "crc32-sqlx" | "md5" | "java-hashcode" | "with-advisory-lock" | "distributedlock-ascii"
  | "distributedlock-hash";

export type Label = string | Uint8Array;

/** What to lock: a label, a label under another derivation, a number, or two int4. */
export type Target =
  | Label
  | bigint
  | { label: Label; as?: Derivation }
  | { key: bigint | number; label?: Label }
  | { pair: readonly [number, number]; label?: Label };

/** A number, or two int4. */
export type Key = bigint | [number, number];

/** The key of a target where no registry says otherwise: see Store.key. */
export function key(target: Target): Key;

export interface StoreOptions {
  /** Shown to others who wait or are refused. */
  application?: string;
  /** The path of a locks.yaml. */
  registry?: string;
  /** Find what is not given as the holdfast command does; the default where there is no url. */
  environment?: boolean;
  records?: "auto" | "off" | "required";
  /** Milliseconds, as all times. */
  pingInterval?: number;
  pingDeadline?: number;
  kill?: number;
  connectTimeout?: number;
  maxWaits?: number;
  maxKeys?: number;
  maxTransactions?: number;
  machine?: number;
  /** Milliseconds for which a wait outlasts a server that is away; without: a minute; Infinity: for ever. */
  patience?: number;
  /** The pooler in between is in session mode. */
  sessionPool?: boolean;
  log?: (level: "debug" | "info" | "warning", message: string) => void;
  /** Told of each wait, hold and transaction that has ended and is sampled. */
  onSpan?: (span: Span) => void;
}

/** traceparent, parent and link are as W3C Trace Context writes them, or "". */
export interface Span {
  kind: "wait" | "hold" | "transaction";
  status: Code | "HF_OK";
  label: string | null;
  key: bigint;
  shared: boolean;
  slot: number;
  token: bigint;
  /** Unix time. */
  startNs: bigint;
  endNs: bigint;
  /** Its own. */
  traceparent: string;
  parent: string;
  /** Of a wait: the hold that was in its way first. */
  link: string;
}

/** "postgresql://…", "local:/path", or what HOLDFAST_URL, HOLDFAST_URL_FILE, DATABASE_URL or libpq's variables say. */
export function open(url?: string | null, options?: StoreOptions): Promise<Store>;

export interface LockOptions {
  /** Milliseconds; 0: not at all; without: for ever. */
  wait?: number;
  /** Ends the wait: the promise fails with its reason, and nothing is held. */
  signal?: AbortSignal;
  shared?: boolean;
  /** At most so many holders. */
  slots?: number;
  /** A lease of so many milliseconds, renewed until it is released, instead of a lock of a session: through any pooler. */
  lease?: number;
  /** Who asks, for the order of locks, `reentrant` and deadlocks; without: nobody else. */
  owner?: bigint | number;
  reentrant?: boolean;
  anyOrder?: boolean;
  /** On a session of its own. */
  private?: boolean;
  /** Fail rather than hold without a fencing token. */
  needToken?: boolean;
  /** Before all who wait, and its holder is asked to yield. With one target, a wait, and no slots. */
  ask?: boolean;
  /** Called at most once, when the wait begins; `why` names the holder. */
  onWait?: (why: HoldfastError) => void;
  /**
   * Called once for each who asks for the lock, a second or two after it began to; `who` tells of it. Released now or
   * later, the lock goes to the one that asked, whoever else waits; to go on is to refuse. Without it asks are not heard.
   */
  onYield?: (lock: Lock, who: string) => void;
  /** The caller's span, the parent of those of the lock. What is not valid is ignored. */
  traceparent?: string;
}

/**
 * Held until it is released, whether or not the program still refers to it. While it is held the process does not
 * end by itself, as with an open socket.
 */
export class Lock extends EventEmitter implements AsyncDisposable {
  private constructor();
  /** Of the first target in the order of keys. */
  readonly key: bigint;
  /** The fencing token: greater than every earlier one. null: the store has no schema. */
  readonly token: bigint | null;
  /** 1 to slots, or 0. */
  readonly slot: number;
  /** The span of the hold, for what is done under the lock; "": it is not traced. */
  readonly traceparent: string;
  readonly state: "held" | "lost" | "released";
  /** Resolves with the reason when the lock is lost. */
  readonly lost: Promise<HoldfastError>;
  /** Aborted, with the reason, when the lock is lost. */
  readonly signal: AbortSignal;
  on(event: "lost", listener: (why: HoldfastError) => void): this;
  once(event: "lost", listener: (why: HoldfastError) => void): this;
  /** Fails with HF_LOST when it had been lost. */
  release(): Promise<void>;
  /** Adds to the history of the lock. */
  note(event: string, detail?: string): Promise<void>;
  /** On the session of the lock, which must be private: written under the lock, or not at all. */
  transact<T>(work: (tx: Transaction) => T | Promise<T>, options?: TransactOptions): Promise<T>;
  [Symbol.asyncDispose](): Promise<void>;
}

export interface TransactOptions {
  isolation?: "serializable" | "repeatable read" | "read committed";
  readOnly?: boolean;
  /** Also after a unique violation (23505). */
  retryUnique?: boolean;
  /** Milliseconds for all attempts together. */
  deadline?: number;
  maxAttempts?: number;
  backoffMin?: number;
  backoffMax?: number;
  /** Warn about a label without an "Operation:" part. */
  expectOperation?: boolean;
  /** Local store: the file of the folder, without ".db". */
  database?: string;
  owner?: bigint | number;
  /** COMMIT is never cancelled. */
  signal?: AbortSignal;
  onStats?: (stats: TransactionStats) => void;
  traceparent?: string;
}

export interface TransactionStats {
  label: string | null;
  key: bigint;
  attempts: number;
  waitMs: number;
  holdMs: number;
  outcome: Code | "HF_OK";
}

/** Booleans are 1 and 0 in a local store; for json, JSON.stringify. */
export type Value = string | number | bigint | boolean | Date | Uint8Array | null | undefined;

export interface Result<T> {
  rows: Record<string, T | null>[];
  columns: string[];
  affected: number;
}

/** One attempt. The work may run again, so it must have no effect outside of it. */
export interface Transaction {
  /** 1, 2, … */
  readonly attempt: number;
  /** The span of the transaction; "": it is not traced. */
  readonly traceparent: string;
  /** Parameters are $1 and so on; values come as text. */
  query(sql: string, values?: readonly Value[], options?: { binary?: false }): Promise<Result<string>>;
  query(sql: string, values: readonly Value[], options: { binary: true }): Promise<Result<Buffer>>;
  /** Travels with the next query, or with COMMIT, and fails there. */
  queue(sql: string, values?: readonly Value[]): Promise<void>;
  /** One more label, before the first statement. */
  serialize(label: Target | readonly Target[]): Promise<void>;
}

export interface LockView {
  key: bigint;
  pair: boolean;
  shared: boolean;
  waiting: boolean;
  ours: boolean;
  sessionKnown: boolean;
  transaction: boolean;
  label: string;
  application: string;
  host: string;
  pid: number;
  backendPid: number;
  ageMs: number;
  ageIsBound: boolean;
  token: bigint;
  slot: number;
  blockedBy: string;
  name: string;
  pattern: string;
  idleMs: number;
  idleHidden: boolean;
  seenMs: number;
  times: number;
  knownAs: string;
  lease: boolean;
  /** Of a lease: how long it lasts if it is not renewed; else 0. */
  leftMs: number;
  /** Of a recorded hold that is traced; else "". */
  traceparent: string;
}

export interface Finding {
  level: "ok" | "warning" | "problem";
  topic: string;
  text: string;
  remedy: string;
}

export class Store implements AsyncDisposable {
  private constructor();
  /** Without the password. */
  readonly name: string;
  readonly isLocal: boolean;
  readonly hasRecords: boolean;
  readonly tables: Tables;
  lock(targets: Target | readonly Target[], options?: LockOptions): Promise<Lock>;
  withLock<T>(targets: Target | readonly Target[], work: (lock: Lock) => T | Promise<T>): Promise<T>;
  withLock<T>(targets: Target | readonly Target[], options: LockOptions, work: (lock: Lock) => T | Promise<T>): Promise<T>;
  /** Locks the labels, takes the snapshot then, and runs the work; again where it could not be committed. */
  transact<T>(
    labels: Target | readonly Target[] | null,
    work: (tx: Transaction) => T | Promise<T>,
    options?: TransactOptions,
  ): Promise<T>;
  /** The key of a target as the registry of the store has it. */
  key(target: Target): Promise<Key>;
  /** The label of a lock of the registry, its placeholders filled: label("booking", { tenant: 7 }). */
  label(name: string, values?: Record<string, string | number | bigint>): Promise<string>;
  network(name: string, options?: NetworkOptions): Promise<Network>;
  /** Every advisory lock that is held or waited for now. */
  locks(): Promise<LockView[]>;
  /** What was recorded in the last so many milliseconds; without: everything. */
  history(since?: number): Promise<LockView[]>;
  /** Claims a run of a periodic job by the clock of the store. Call it while holding the job's lock. */
  claim(label: string, period: number): Promise<{ due: boolean; waitMs: number }>;
  /** Installs or upgrades the schema. */
  init(): Promise<{ from: number; to: number }>;
  examine(): Promise<Finding[]>;
  /** Ends every wait and transaction and releases what is held. */
  close(): Promise<void>;
  [Symbol.asyncDispose](): Promise<void>;
}

export interface TableView {
  cluster: string | null;
  database: string | null;
  table: string;
  id: bigint;
  createdMs: number;
  /** 0: it is live. */
  droppedMs: number;
  references: number;
}

export interface AdoptOptions {
  schema?: string;
  relation?: string;
  file?: string;
  cluster?: string;
  database?: string;
  dryRun?: boolean;
  constrain?: boolean;
  wait?: number;
  onFault?: (fault: {
    problem: string;
    table: string | null;
    context: string | null;
    advisoryId: string | null;
  }) => void;
}

export interface Adopted {
  rows: number;
  tables: number;
  minted: number;
  rowsGiven: number;
  references: number;
  moved: number;
  notNull: boolean;
  foreignKey: boolean;
}

/** Shared tables, by names such as "cluster/database.table". */
export interface Tables {
  register(name: string): Promise<{ id: bigint; created: boolean }>;
  find(name: string): Promise<bigint | null>;
  lock(name: string, options?: LockOptions): Promise<Lock>;
  ref(name: string, context: string): Promise<bigint>;
  /** True: it was the last reference, and the id is retired. */
  unref(name: string, context: string, options?: { wait?: number }): Promise<boolean>;
  drop(name: string, options?: { wait?: number; theirRefsToo?: boolean }): Promise<void>;
  list(options?: { name?: string; retiredToo?: boolean }): Promise<TableView[]>;
  refs(name: string): Promise<string[]>;
  adopt(options?: AdoptOptions): Promise<Adopted>;
  leave(options?: { schema?: string; relation?: string }): Promise<void>;
}

export interface NetworkOptions {
  schema?: string;
  latestCursor?: string;
  oldestCursor?: string;
  readWait?: number;
}

/** The ledgers of one network. */
export interface Network extends AsyncDisposable {
  readonly name: string;
  /** null: there is no such cursor, which is not the same as zero. */
  cursor(name: string): Promise<bigint | null>;
  cursors(): Promise<Map<string, bigint>>;
  setCursor(name: string, value: bigint | number): Promise<void>;
  /** Leaves it when it is lower already. */
  lowerCursor(name: string, value: bigint | number): Promise<void>;
  /** To value, only from value - 1. */
  advanceCursor(name: string, value: bigint | number): Promise<void>;
  swapCursor(name: string, from: bigint | number, to: bigint | number): Promise<void>;
  /** What is missing, both ends included. */
  gaps(from?: bigint | number, to?: bigint | number): Promise<{ from: bigint; to: bigint }[]>;
  close(): Promise<void>;
}

/** A transaction of Prisma. */
export interface PrismaLike {
  $queryRaw(strings: TemplateStringsArray, ...values: any[]): PromiseLike<any>;
}

/** A client of pg. */
export interface PgLike {
  query(text: string, values: any[]): PromiseLike<{ rows: any[] }>;
}

/**
 * Locks a label until the caller's own transaction ends, which must be READ COMMITTED: under
 * REPEATABLE READ and SERIALIZABLE its snapshot would be older than the lock (HF_CONFIG). Gives
 * the key. `store` is for its registry.
 */
export function serialize(client: PrismaLike | PgLike, target: Target, options?: { store?: Store }): Promise<Key>;
