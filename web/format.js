// Numbers, times and names as people read them. Pure.

const grouped = new Intl.NumberFormat('en-US', { maximumFractionDigits: 0 });
const compact = new Intl.NumberFormat('en-US', { notation: 'compact', maximumFractionDigits: 1 });
const minuteMs = 60_000;
const hourMs = 60 * minuteMs;
const dayMs = 24 * hourMs;
const yearMs = 365 * dayMs;

export function formatCount(count) {
  return count < 1e6 ? grouped.format(count) : compact.format(count);
}

// Something per second: a rate below ten keeps a decimal, since 0.2 a second is not nothing.
export function formatRate(rate) {
  if (rate === null) return '–';
  if (rate === 0) return '0';
  if (rate < 0.1) return '<0.1';
  return rate < 9.95 ? rate.toFixed(1) : formatCount(Math.round(rate));
}

// How long something has lasted or will last: two units at most, and steady in width.
export function formatDuration(ms) {
  const left = Math.max(ms, 0);
  if (left < 9_950) return `${(left / 1000).toFixed(1)} s`;
  if (left < minuteMs) return `${Math.floor(left / 1000)} s`;
  if (left < hourMs) return twoUnits(left, minuteMs, 'm', 1000, 's');
  if (left < dayMs) return twoUnits(left, hourMs, 'h', minuteMs, 'm');
  if (left < yearMs) return twoUnits(left, dayMs, 'd', hourMs, 'h');
  return `${formatCount(Math.floor(left / yearMs))} y`;
}

function twoUnits(ms, large, largeName, small, smallName) {
  const rest = String(Math.floor((ms % large) / small)).padStart(2, '0');
  return `${Math.floor(ms / large)}${largeName} ${rest}${smallName}`;
}

// What was measured: three digits, from microseconds up.
export function formatLatency(ms) {
  if (ms === 0) return '0 ms';
  if (ms < 1) return `${threeDigits(ms * 1000)} µs`;
  if (ms < 1000) return `${threeDigits(ms)} ms`;
  return ms < 2 * minuteMs ? `${threeDigits(ms / 1000)} s` : formatDuration(ms);
}

function threeDigits(value) {
  return value >= 100 ? value.toFixed(0) : String(Number(value.toPrecision(value < 1 ? 1 : 2)));
}

export function formatTime(unixMs) {
  const at = new Date(unixMs);
  const two = (part) => String(part).padStart(2, '0');
  return (
    `${two(at.getHours())}:${two(at.getMinutes())}:${two(at.getSeconds())}` +
    `.${String(at.getMilliseconds()).padStart(3, '0')}`
  );
}

export function plural(count, one, many = `${one}s`) {
  return `${formatCount(count)} ${count === 1 ? one : many}`;
}

// What a hold, a place in a queue or an event has of its key, in words: none when it has a lock
// alone, or one permit, and no other key with it.
export function describeShare({ mode, permits = 1, keys = 1 }) {
  const words = [];
  if (mode === 'shared') words.push('shared');
  if (permits > 1) words.push(plural(permits, 'permit'));
  if (keys > 1) words.push(`${plural(keys - 1, 'key')} more`);
  return words.join(', ');
}

const invisible = /[\p{C}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}]/gu;
const joiners = /[\u200c\u200d\p{Variation_Selector}]/u; // scripts and emoji need them

// A name as it is safe to look at: what turns text around or cannot be seen is written as a code.
export function visibleName(name) {
  return name.replace(invisible, (character) =>
    joiners.test(character) ? character : code(character),
  );
}

// A name with all that is easily overlooked written as codes, or null when there is no such thing:
// two keys that look alike are not the same key.
export function spellOut(name) {
  const spelled = name.replace(invisible, code).replace(/^ +| +$| {2,}|(?! )\p{Zs}/gu, codes);
  return spelled === name ? null : spelled;
}

function code(character) {
  return `\\u{${character.codePointAt(0).toString(16)}}`;
}

function codes(characters) {
  return [...characters].map(code).join('');
}
