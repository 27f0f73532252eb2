"""Creates a bucket and a user in moto, prints the user's keys, and turns authentication on."""
import json
import sys
import urllib.request

import boto3

url, bucket = sys.argv[1:]
options = {
    "endpoint_url": url,
    "region_name": "us-east-1",
    "aws_access_key_id": "none",
    "aws_secret_access_key": "none",
}
iam = boto3.client("iam", **options)
iam.create_user(UserName="stemma")
keys = iam.create_access_key(UserName="stemma")["AccessKey"]
policy = {"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Action": "s3:*", "Resource": "*"}]}
iam.put_user_policy(UserName="stemma", PolicyName="all", PolicyDocument=json.dumps(policy))
boto3.client("s3", **options).create_bucket(Bucket=bucket)
print(keys["AccessKeyId"], keys["SecretAccessKey"])
request = urllib.request.Request(
    url + "/moto-api/reset-auth", data=b"0", method="POST", headers={"Content-Type": "text/plain"})
urllib.request.urlopen(request).read()
