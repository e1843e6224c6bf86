/** Makes what a control plane is started with, ahead of the tests: it takes longer than a test may. */
import { say } from '../../scripts/setup/say.mjs';
import { missingForKubernetes } from './control-plane.ts';
import { kubernetesClients } from './clients.ts';
import { controlPlanePrograms } from './programs.ts';

const missing = missingForKubernetes();
if (missing === null) await Promise.all([controlPlanePrograms(), kubernetesClients()]);
else say(`no Kubernetes for the tests, for want of this: ${missing}`);
