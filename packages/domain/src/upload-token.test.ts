import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { parseKeySet } from './keys.ts';
import { signPlaybackToken } from './playback-token.ts';
import { signText } from './signed-text.ts';
import { signUploadToken, type UploadClaims, verifyUploadToken } from './upload-token.ts';

const keySet = parseKeySet(`k1:${'1'.repeat(32)}`);
const claims: UploadClaims = {
  tokenId: 'abc',
  accountId: 'acc_1',
  projectId: 'prj_1',
  domain: 'shop.example.com',
  maxSizeBytes: 5_368_709_120,
  contentType: 'video/mp4',
  title: 'Holiday',
  expiresAt: new Date('2026-03-01T12:00:00.123Z'),
};

describe('verifyUploadToken', () => {
  it('gives back what was signed, with the longest title and domain that there may be', () => {
    const made = fc.record({
      ...{ tokenId: fc.uuid(), accountId: fc.constant('acc_1'), projectId: fc.constant('prj_1') },
      domain: fc.constantFrom('a.example', `${'a'.repeat(60)}.`.repeat(4)),
      maxSizeBytes: fc.integer({ min: 1, max: 549_755_813_888 }),
      contentType: fc.constantFrom('video/mp4', null),
      title: fc.constantFrom(null, 'x', '🎬'.repeat(200), '"\\'.repeat(100)),
      expiresAt: fc.date({ min: new Date(0), noInvalidDate: true }),
    });
    fc.assert(
      fc.property(made, (each) => {
        expect(verifyUploadToken(signUploadToken(each, keySet), keySet)).toEqual(each);
      }),
    );
  });

  it('takes what earlier versions signed, and no text of another purpose', () => {
    const body = {
      ...{ tid: 'abc', acc: 'acc_1', prj: 'prj_1', dom: 'shop.example.com' },
      ...{ max: 5_368_709_120, type: 'video/mp4', title: 'Holiday', exp: claims.expiresAt.getTime() },
    };
    expect(verifyUploadToken(signText('millrace.upload.v1', body, keySet), keySet)).toEqual(claims);
    expect(verifyUploadToken(signText('millrace.upload.v2', body, keySet), keySet)).toBeNull();
  });

  it('refuses another key, another spelling and a playback token', () => {
    const token = signUploadToken(claims, keySet);
    expect(verifyUploadToken(token, parseKeySet(`k1:${'2'.repeat(32)}`))).toBeNull();
    expect(verifyUploadToken(`${token}=`, keySet)).toBeNull();
    const playback = signPlaybackToken(
      { kind: 'playback', videoId: 'vid_1', domain: claims.domain, expiresAt: claims.expiresAt },
      keySet,
    );
    expect(verifyUploadToken(playback, keySet)).toBeNull();
  });
});
