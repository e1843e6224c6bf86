import { describe, expect, it } from '@jest/globals';
import { brandingOf } from './checks.ts';
import { accountState, projectState, videoState } from './testing/sample.ts';

describe('brandingOf', () => {
  const view = (whiteLabel: boolean, project = true) => ({
    video: videoState(),
    account: accountState({ whiteLabel }),
    project: project ? projectState() : null,
  });

  it('is the project’s where the plan has white label, from the moment that it has', () => {
    expect(brandingOf(view(true))).toEqual(projectState().branding);
    expect(brandingOf(view(false))).toBeNull();
  });

  it('is none of a project or account that is not known', () => {
    expect(brandingOf(view(true, false))).toBeNull();
    expect(brandingOf({ ...view(true), account: null })).toBeNull();
  });
});
