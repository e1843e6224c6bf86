import { describe, expect, it } from '@jest/globals';
import { bearerOf, cookieOf, cookieText } from './credentials.ts';

describe('bearerOf', () => {
  it.each<[string | undefined, string | null]>([
    ['Bearer abc', 'abc'],
    ['bEARER  abc ', 'abc'],
    ['Bearer a b', 'a b'],
    ['Bearer', ''],
    ['Bearer ', ''],
    ['Bearer\tabc', null],
    ['Bearerabc', null],
    ['XBearer abc', null],
    ['Basic Bearer abc', null],
    ['', null],
    [undefined, null],
  ])('of %j is %j', (authorization, expected) => {
    expect(bearerOf(authorization === undefined ? {} : { authorization })).toBe(expected);
  });
});

describe('cookieOf', () => {
  it.each<[string | undefined, string | null]>([
    ['a=1', '1'],
    ['b=2; a=1', '1'],
    ['b=2;a = 1 ;c=3', '1'],
    ['a=1; b=2; a=1', '1'],
    ['a=1; a=2', null],
    ['a=1; a=', null],
    ['a=x=y', 'x=y'],
    ['a=', ''],
    ['a', null],
    ['=a', null],
    ['aa=1; ba=2; A=3', null],
    ['', null],
    [undefined, null],
  ])('finds a in %j: %j', (cookie, expected) => {
    expect(cookieOf(cookie === undefined ? {} : { cookie }, 'a')).toBe(expected);
  });

  it('takes a cookie without a name for none of that name', () => {
    expect(cookieOf({ cookie: '=secret' }, '')).toBeNull();
  });
});

describe('cookieText', () => {
  it('keeps the value from scripts, from plain HTTP and from other sites', () => {
    expect(cookieText('a', 'v', { maxAge: 60 })).toBe(
      'a=v; Path=/; Max-Age=60; HttpOnly; Secure; SameSite=Lax',
    );
    expect(cookieText('a', '', { maxAge: 0 })).toBe('a=; Path=/; Max-Age=0; HttpOnly; Secure; SameSite=Lax');
  });
});
