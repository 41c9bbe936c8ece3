"""The resources that grants name, each as an expression of the template."""

_BUCKET = "!Sub arn:${AWS::Partition}:s3:::${%s}"
_KAFKA = "!Sub arn:${AWS::Partition}:kafka:${AWS::Region}:${AWS::AccountId}:"
_GLUE = "!Sub arn:${AWS::Partition}:glue:${AWS::Region}:${AWS::AccountId}:"
_TABLE_BUCKET = "!Sub arn:${AWS::Partition}:s3tables:${AWS::Region}:${AWS::AccountId}:bucket/${TableBucketName}"

PLACES = {
    "log of the builder": "!GetAtt BuilderLogs.Arn",
    "log of the sealer": "!GetAtt SealerLogs.Arn",
    "log of the control plane": "!GetAtt ControlLogs.Arn",
    "output of the job": "!GetAtt JobOutputLogs.Arn",
    "errors of the job": "!GetAtt JobErrorLogs.Arn",
    "events": "!GetAtt EventQueue.Arn",
    "dead letters": "!GetAtt DeadLetterQueue.Arn",
    "failed calls": "!GetAtt FailedCallsQueue.Arn",
    "manifest queue": "!Sub arn:${AWS::Partition}:sqs:${AWS::Region}:${AWS::AccountId}:${JobName}-manifests",
    "claims": "!GetAtt ClaimsTable.Arn",
    "topic": "!Ref AlarmTopic",
    "schedules": "!Sub arn:${AWS::Partition}:events:${AWS::Region}:${AWS::AccountId}:rule/${JobName}-*",
    "job": f"{_GLUE}job/${{JobName}}",
    "catalog": f"{_GLUE}catalog",
    "database": f"{_GLUE}database/${{DatabaseName}}",
    "table": f"{_GLUE}table/${{DatabaseName}}/${{EventsTableName}}",
    "iceberg database": f"{_GLUE}database/${{IcebergDatabase}}",
    "iceberg table": f"{_GLUE}table/${{IcebergTable}}",
    "table bucket": _TABLE_BUCKET,
    "tables of the bucket": f"{_TABLE_BUCKET}/table/*",
    "everything": '"*"',
    "settings": f"{_BUCKET % 'ArtefactBucketName'}/${{Environment}}/settings/*",
    "job artefacts": f"{_BUCKET % 'ArtefactBucketName'}/${{Environment}}/job/*",
    "work bucket": _BUCKET % "WorkBucketName",
    "staging bucket": _BUCKET % "StagingBucketName",
    "lake bucket": _BUCKET % "LakeBucketName",
    "input bucket": _BUCKET % "InputBucketName",
    "input": f"{_BUCKET % 'InputBucketName'}/${{InputPrefix}}*",
    "manifests": f"{_BUCKET % 'WorkBucketName'}/${{ManifestsPrefix}}/*",
    "pending": f"{_BUCKET % 'WorkBucketName'}/${{PendingPrefix}}/*",
    "state": f"{_BUCKET % 'WorkBucketName'}/${{StatePrefix}}/*",
    "staging": f"{_BUCKET % 'StagingBucketName'}/${{StagingPrefix}}/*",
    "accepted": f"{_BUCKET % 'WorkBucketName'}/${{StatePrefix}}/accepted/*",
    "recent": f"{_BUCKET % 'WorkBucketName'}/${{StatePrefix}}/recent/*",
    "open": f"{_BUCKET % 'WorkBucketName'}/${{StatePrefix}}/open/*",
    "progress of landing": f"{_BUCKET % 'WorkBucketName'}/${{StatePrefix}}/landing/*",
    "control": f"{_BUCKET % 'WorkBucketName'}/${{StatePrefix}}/control/*",
    "runs": f"{_BUCKET % 'WorkBucketName'}/${{StatePrefix}}/runs/*",
    "spark ui": f"{_BUCKET % 'WorkBucketName'}/spark-ui/*",
    "metadata of the table": f"{_BUCKET % 'LakeBucketName'}/${{OutputPrefix}}/_table/*",
    "rows": f"{_BUCKET % 'LakeBucketName'}/${{OutputPrefix}}/*",
    "streams": "!Sub arn:${AWS::Partition}:kinesis:*:${AWS::AccountId}:stream/${KinesisStreams}",
    "consumers": "!Sub arn:${AWS::Partition}:kinesis:*:${AWS::AccountId}:stream/${KinesisStreams}/consumer/*",
    "brokers": f"{_KAFKA}cluster/${{KafkaClusterName}}/*",
    "topics": f"{_KAFKA}topic/${{KafkaClusterName}}/*/${{KafkaTopics}}",
    "secrets": "!Ref KafkaSecrets",
    "key of secrets": "!Ref KafkaSecretsKeyArn",
    "connection": f"{_GLUE}connection/${{JobName}}-brokers",
    "network interfaces": "!Sub arn:${AWS::Partition}:ec2:${AWS::Region}:${AWS::AccountId}:network-interface/*",
    "schema file": (
        '!If [HasSchemaFile, !Sub "arn:${AWS::Partition}:s3:::${SchemaFile}", '
        '!Sub "arn:${AWS::Partition}:s3:::${ArtefactBucketName}/${Environment}/settings/*"]'
    ),
}
"""All resources by the name that grants use."""
