import { describe, expect, it } from '@jest/globals';
import { parseKeySet } from '@millrace/domain';
import { codeHashes, maskedNumber, mobileNumber, phoneHashes } from './number.ts';

const codeThrown = (work: () => unknown): unknown => {
  try {
    return work();
  } catch (error) {
    return (error as { code: unknown }).code;
  }
};

describe('a mobile number', () => {
  it.each([
    ['0501234567', undefined, '+966501234567'],
    ['501234567', undefined, '+966501234567'],
    ['050 123 4567', 'sa', '+966501234567'],
    ['٠٥٠١٢٣٤٥٦٧', 'sa', '+966501234567'],
    ['0501234567', 'ae', '+971501234567'],
    ['50012345', 'kw', '+96550012345'],
    ['33123456', 'qa', '+97433123456'],
    ['36001234', 'bh', '+97336001234'],
    ['92123456', 'om', '+96892123456'],
    [' +966 50-123-4567 ', 'xx', '+966501234567'],
    ['00966501234567', 'om', '+966501234567'],
    ['+971501234567', undefined, '+971501234567'],
  ])('%j of %s is %s [PHN-202, PHN-204, PHN-205]', (phone, country, number) => {
    expect(mobileNumber(phone, country)).toBe(number);
  });

  it.each([
    // Other countries', landlines, too short, too long, an extension, letters, text around it, two numbers.
    ...['+14155552671', '+201001234567', '0112345678', '+966112345678', '050123456', '05012345678'],
    ...['+966501234567;ext=5', '0501234567 x5', '05O1234567', '+966 50 FLOWERS', 'call 0501234567'],
    ...['0501234567/0501234568', '+', '00', '+++966501234567', '966501234567x'],
    ...['tel:+966501234567;phone-context=+1', '+966501234567\u0661'],
  ])('%j is none [PHN-202]', (phone) => {
    expect(codeThrown(() => mobileNumber(phone))).toBe('invalid_phone');
  });

  it.each(['us', 'SA', '', 'constructor', '__proto__'])('of country %j is none [PHN-203]', (country) => {
    expect(codeThrown(() => mobileNumber('0501234567', country))).toBe('invalid_country');
  });

  it('is shown by its country and its end [PHN-002]', () => {
    expect(maskedNumber('+966501234567')).toBe('+966*******67');
    expect(maskedNumber('+96550012345')).toBe('+965******45');
  });
});

describe('what is stored', () => {
  const [one, other] = [parseKeySet(`a:${'1'.repeat(32)}`), parseKeySet(`b:${'2'.repeat(32)}`)];
  const both = parseKeySet(`b:${'2'.repeat(32)},a:${'1'.repeat(32)}`);

  it('of a number depends on the key, and old keys still tell it [PHN-206]', () => {
    const [first, second] = [phoneHashes('+966501234567', one), phoneHashes('+966501234567', other)];
    expect(first).not.toEqual(second);
    expect(first[0]).toHaveLength(32);
    expect(phoneHashes('+966501234567', both)).toEqual([second[0], first[0]]);
  });

  it('of a code belongs to its challenge', () => {
    expect(codeHashes('phc_1', '123456', one)).not.toEqual(codeHashes('phc_2', '123456', one));
    expect(codeHashes('phc_1', '123456', both)).toHaveLength(2);
  });
});
