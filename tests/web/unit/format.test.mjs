import assert from 'node:assert/strict';
import test from 'node:test';
import { pure } from './pure.mjs';

const {
  describeShare,
  formatCount,
  formatDuration,
  formatLatency,
  formatRate,
  spellOut,
  visibleName,
} = await pure('format.js');
const secondMs = 1000;
const hourMs = 3600 * secondMs;

test('durations have two units at most, and are never negative', () => {
  const cases = [
    [-5, '0.0 s'],
    [0, '0.0 s'],
    [940, '0.9 s'],
    [9_940, '9.9 s'],
    [9_960, '9 s'],
    [59_999, '59 s'],
    [60_000, '1m 00s'],
    [hourMs - 1, '59m 59s'],
    [hourMs, '1h 00m'],
    [24 * hourMs, '1d 00h'],
    [9_223_372_036_000, '292 y'],
  ];
  for (const [ms, text] of cases) assert.equal(formatDuration(ms), text);
});

test('latencies go down to microseconds', () => {
  const cases = [
    [0, '0 ms'],
    [0.0006, '0.6 µs'],
    [0.25, '250 µs'],
    [1.25, '1.3 ms'],
    [340, '340 ms'],
    [6400, '6.4 s'],
    [100_000, '100 s'],
    [150_000, '2m 30s'],
  ];
  for (const [ms, text] of cases) assert.equal(formatLatency(ms), text);
});

test('rates keep a decimal while it matters', () => {
  const cases = [
    [null, '–'],
    [0, '0'],
    [0.01, '<0.1'],
    [0.2, '0.2'],
    [9.96, '10'],
    [1234.5, '1,235'],
  ];
  for (const [rate, text] of cases) assert.equal(formatRate(rate), text);
});

test('counts are grouped, and short when they are large', () => {
  assert.equal(formatCount(100_000), '100,000');
  assert.equal(formatCount(1_250_000), '1.3M');
});

test('of a share only what is unusual is said', () => {
  const cases = [
    [{}, ''],
    [{ mode: 'exclusive', permits: 1, keys: 1 }, ''],
    [{ mode: 'shared' }, 'shared'],
    [{ permits: 2500 }, '2,500 permits'],
    [{ keys: 2 }, '1 key more'],
    [{ mode: 'shared', keys: 64 }, 'shared, 63 keys more'],
    [{ permits: 2, keys: 3 }, '2 permits, 2 keys more'],
  ];
  for (const [entry, words] of cases) assert.equal(describeShare(entry), words);
});

test('what cannot be seen is spelled out; what scripts and emoji need is left alone', () => {
  assert.equal(visibleName('plain <b> 日本'), 'plain <b> 日本');
  assert.equal(visibleName('\u202Egnp.exe'), '\\u{202e}gnp.exe');
  assert.equal(visibleName('a\u200Bb'), 'a\\u{200b}b');
  assert.equal(visibleName('👩‍👧'), '👩‍👧');
  assert.equal(spellOut('a b'), null);
  assert.equal(spellOut('a  b'), 'a\\u{20}\\u{20}b');
  assert.equal(spellOut(' a\u00A0b'), '\\u{20}a\\u{a0}b');
});
