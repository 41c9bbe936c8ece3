"""VARIANT: the values of objects and arrays, in the binary form of Parquet and Iceberg.

Parquet's specification of the form: https://github.com/apache/parquet-format/blob/master/VariantEncoding.md
"""
