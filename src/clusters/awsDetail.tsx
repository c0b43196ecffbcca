import { TranslationBundle } from '@jupyterlab/translation';
import * as React from 'react';

import { Age } from './age';
import type { ICluster, IClusterDetail } from './types';
import type { ClusterView } from './view';
import { ErrorMessage } from '../components/errorMessage';
import { Notes } from '../components/notes';
import { momentText } from '../components/words';
import { GroupsTable } from './groupsTable';
import { ReachNote } from './reach';
import { Settings } from './awsSettings';
import { IHyperpodCluster, LinkKind } from './awsTypes';
import { imageStatusText, orchestratorText } from './awsWords';

/**
 * AWS data of a HyperPod cluster: its instance groups, its settings, and a link to the AWS console.
 */
export function AwsDetail(props: {
  view: ClusterView;
  connect: (cluster: ICluster) => void;
  trans: TranslationBundle;
}): JSX.Element {
  const { connect, trans, view } = props;
  const { error: failure, value } = view.detail;
  const known = value?.cluster.hyperpod ?? null;
  // Of a cluster of the configuration there is something to say though AWS does not describe it.
  const error = failure ?? (known === null ? value?.problem : null);
  return (
    <>
      {error && (
        <ErrorMessage
          error={error}
          trans={trans}
          retry={() => void view.refresh()}
        />
      )}
      {value === null && !error && (
        <p className="jp-HyperPod-Message" role="status">
          {trans.__('Loading…')}
        </p>
      )}
      {value && known && (
        <>
          {!value.cluster.configured && known.reach && (
            <ReachNote
              reach={known.reach}
              connect={() => connect(value.cluster)}
              trans={trans}
            />
          )}
          <Detail detail={value} known={known} trans={trans} />
        </>
      )}
    </>
  );
}

interface IProps {
  detail: IClusterDetail;
  /** What AWS knows of it. */
  known: IHyperpodCluster;
  trans: TranslationBundle;
}

function Detail(props: IProps): JSX.Element {
  const { detail, known, trans } = props;
  return (
    <>
      {detail.problem && <Age aged={detail} trans={trans} />}
      <Facts {...props} />
      {detail.links && <Links links={detail.links} trans={trans} />}
      {known.groups && <GroupsTable groups={known.groups} trans={trans} />}
      <Settings settings={known.settings} trans={trans} />
      <Tags tags={detail.tags ?? []} trans={trans} />
      <Notes notes={detail.notes} />
    </>
  );
}

function Facts({ detail, known, trans }: IProps): JSX.Element {
  const {
    image_status: imageStatus,
    mounted_here: mountedHere,
    nodes,
    target
  } = known;
  const facts: [string, string][] = [
    [trans.__('Orchestrator'), orchestratorText(known.orchestrator, trans)],
    [
      trans.__('Nodes'),
      nodes === null || target === null
        ? ''
        : trans.__('%1 of %2', nodes, target)
    ],
    [trans.__('Configured as'), known.configured_as.join(', ')],
    [trans.__('Mount path here'), mountedText(mountedHere, trans)],
    [
      trans.__('Software'),
      imageStatus === null ? '' : imageStatusText(imageStatus, trans)
    ],
    [trans.__('Created'), momentText(known.created_at ?? '')],
    [trans.__('Region'), known.region],
    [trans.__('ARN'), known.arn],
    [trans.__('Log group'), detail.log_group ?? '']
  ];
  return (
    <dl className="jp-HyperPod-facts">
      {facts
        .filter(([, value]) => value !== '')
        .map(([name, value]) => (
          <div key={name}>
            <dt>{name}</dt>
            <dd>{value}</dd>
          </div>
        ))}
    </dl>
  );
}

function mountedText(
  places: readonly string[] | null,
  trans: TranslationBundle
): string {
  if (places === null) {
    return '';
  }
  return places.length > 0 ? places.join(', ') : trans.__('no');
}

function Links(props: {
  links: Readonly<Record<LinkKind, string | null>>;
  trans: TranslationBundle;
}): JSX.Element | null {
  const { links, trans } = props;
  const labels: Readonly<Record<LinkKind, string>> = {
    cluster: trans.__('Cluster in the SageMaker console'),
    logs: trans.__('Logs in the CloudWatch console'),
    eks: trans.__('EKS cluster in its console')
  };
  const kinds: readonly LinkKind[] = ['cluster', 'logs', 'eks'];
  const shown = kinds.flatMap(kind => {
    const href = links[kind];
    return href === null ? [] : [{ kind, href }];
  });
  return shown.length === 0 ? null : (
    <ul className="jp-HyperPod-Links" aria-label={trans.__('AWS console')}>
      {shown.map(({ href, kind }) => (
        <li key={kind}>
          <a href={href} target="_blank" rel="noopener noreferrer">
            {labels[kind]}
          </a>
        </li>
      ))}
    </ul>
  );
}

function Tags(props: {
  tags: NonNullable<IClusterDetail['tags']>;
  trans: TranslationBundle;
}): JSX.Element | null {
  const { tags, trans } = props;
  return tags.length === 0 ? null : (
    <section aria-label={trans.__('Tags')}>
      <h2>{trans.__('Tags')}</h2>
      <dl className="jp-HyperPod-facts">
        {tags.map(({ key, value }) => (
          <div key={key}>
            <dt>{key}</dt>
            <dd>{value}</dd>
          </div>
        ))}
      </dl>
    </section>
  );
}
