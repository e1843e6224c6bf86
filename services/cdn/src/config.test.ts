import { describe, expect, it } from '@jest/globals';
import { settingProblems } from '@millrace/testing';
import { cdnProcessConfig } from './config.ts';

const needed = {
  API_INTERNAL_URL: 'http://api:8081',
  CDN_URL: 'https://cdn.example.com',
  DOCS_URL: 'https://docs.example.com',
  INTERNAL_SECRET: 'x'.repeat(32),
  KAFKA_BROKERS: 'kafka-1:9092,kafka-2:9092',
  PLAYBACK_KEYS: `k:${'x'.repeat(32)}`,
  S3_BUCKET: 'millrace',
};

describe('the settings of a CDN that is a process of its own', () => {
  it('are right with what has no default, and name all that is missing', () => {
    expect(settingProblems(cdnProcessConfig, needed)).toEqual([]);
    expect(settingProblems(cdnProcessConfig, {})).toEqual(Object.keys(needed).sort());
  });

  it('are read together with what they belong to', () => {
    const halves = { ...needed, KAFKA_SASL_USERNAME: 'me', S3_ACCESS_KEY_ID: 'key' };
    expect(settingProblems(cdnProcessConfig, halves)).toEqual([
      'KAFKA_SASL_MECHANISM',
      'KAFKA_SASL_PASSWORD',
      'S3_SECRET_ACCESS_KEY',
    ]);
  });
});
